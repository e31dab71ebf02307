package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

const (
	// maxOthers is how long a host that is to stay waits for one that makes no room,
	// but may be stopping.
	maxOthers = 2 * time.Second
	// maxHandover is how long it waits for one that makes room, beyond the grace of
	// calls: clients have their answers, and plugins end.
	maxHandover = 30 * time.Second
	// askEvery is how often it asks: a host that has made room may be the next one,
	// too.
	askEvery = 200 * time.Millisecond
)

// afterOthers is withDaemon for a host that is to stay: it takes over from those that
// are there for a client or a command.
func (a *app) afterOthers(ctx context.Context, f func(*daemon.Daemon) error) error {
	t := takeover{app: a, until: time.Now().Add(maxOthers), asked: map[int]bool{}}
	for {
		err := a.withDaemon(ctx, forGood, f)
		held, ok := errors.AsType[*daemon.HeldError](err)
		if !ok {
			return err
		}
		t.askForRoom(ctx, held)
		if time.Now().Before(t.until) && pause(ctx, retryTakeover) == nil {
			continue
		}
		if held.PID == 0 {
			return err
		}
		return &hintError{err, fmt.Sprintf("that process is already the host, and every command uses it; to replace it: kill %d", held.PID)}
	}
}

// takeover is the wait for a state directory.
type takeover struct {
	app   *app
	until time.Time    // when it is given up
	next  time.Time    // when the host is asked again, which may have made room and come back
	asked map[int]bool // the processes that make room
	stays int          // the process that does not
}

// askForRoom asks the host to make room, tells the user so once, and sets how long that
// may take.
func (t *takeover) askForRoom(ctx context.Context, held *daemon.HeldError) {
	if held.PID == 0 || held.PID == t.stays || time.Now().Before(t.next) {
		return
	}
	room, err := handOver(ctx, held.Dir)
	now := time.Now()
	t.next = now.Add(askEvery)
	switch {
	case isStatus(err, http.StatusNotFound), isStatus(err, http.StatusUnprocessableEntity): // older than this, or serves
		t.stays, t.until = held.PID, now.Add(maxOthers)
	case err != nil || t.asked[held.PID]: // it does not answer yet, or any more
	default:
		t.asked[held.PID] = true
		t.until = now.Add(time.Duration(room.GraceMS)*time.Millisecond + maxHandover)
		what := "taking over from process %d (toolhost mcp)..."
		if room.Ephemeral {
			what = "waiting for process %d, a command that is the host until it ends..."
		}
		fmt.Fprintf(t.app.stderr, "toolhost: "+what+"\n", held.PID)
	}
}

// handOver asks the host that holds a state directory to make room.
func handOver(ctx context.Context, stateDir string) (httpapi.Handover, error) {
	key, err := auth.ReadKey(filepath.Join(stateDir, auth.ApproverKey))
	if err != nil {
		return httpapi.Handover{}, err
	}
	c, err := client.New(client.Options{StateDir: stateDir, Token: key, Name: "toolhost"})
	if err != nil {
		return httpapi.Handover{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, maxOthers)
	defer cancel()
	return c.HandOver(ctx)
}
