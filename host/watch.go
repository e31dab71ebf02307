package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

func (a *app) approvalsWatchCommand() *cobra.Command {
	bell := false
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Show each call that waits, and ask about it here",
		Long: `Show each call that waits for approval, and ask about it here, until Ctrl-C. Without a
terminal, the command prints the calls and asks nothing. It also tells which calls the
policy denied and which plugins broke. It waits while no host runs.

` + keysText,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.watchApprovals(cmd.Context(), bell) },
	}
	cmd.Flags().BoolVar(&bell, "bell", false, "ring the terminal's bell for each call")
	return cmd
}

// watchApprovals watches until ctx ends.
func (a *app) watchApprovals(ctx context.Context, bell bool) error {
	stateDir, _, err := a.running(ctx)
	if err != nil {
		return err
	}
	w := newWatch(a, stateDir, a.shareTerminal(), bell)
	if !a.json {
		fmt.Fprint(a.stderr, "watching: each call that waits for approval is shown here; Ctrl-C ends the watch\n")
	}
	return a.remoteError(w.run(ctx))
}

// shareTerminal returns the terminal on which a person answers questions, and lets all other output
// to standard error share it. It returns nil if there is no terminal, or if a program reads the
// output.
func (a *app) shareTerminal() *sharedTerminal {
	output, ok := a.stderr.(*os.File)
	if !ok || a.json || !a.onTerminal() {
		return nil
	}
	shared := newSharedTerminal(a.stdin, output)
	a.stderr = shared
	return shared
}

// watch shows the calls that wait for approval, one at a time, and asks a person about each.
type watch struct {
	app      *app
	stateDir string          // of a host on this machine
	terminal *sharedTerminal // nil means that nothing is asked
	bell     bool
	greeted  bool // the process has told what is wrong with the first host

	rung map[string]bool // the open approvals that the bell has rung for
	left map[string]bool // the open approvals that the person leaves open, or that were printed
	// ended is when the last question about a call ended.
	ended time.Time
	// reached is set when the host that is watched has answered.
	reached bool
}

func newWatch(a *app, stateDir string, terminal *sharedTerminal, bell bool) *watch {
	return &watch{app: a, stateDir: stateDir, terminal: terminal, bell: bell, rung: map[string]bool{}, left: map[string]bool{}}
}

// run watches one host after the other until ctx ends or the person ends the input.
func (w *watch) run(ctx context.Context) error {
	err := w.app.eachHost(ctx, w.stateDir, func() (bool, error) {
		w.reached = false
		err := w.ofHost(ctx)
		return w.reached, err
	}, w.tellAbsent)
	if errors.Is(err, errUndecided) { // the end of the input
		return nil
	}
	return err
}

// tellAbsent tells that no host answers, for a reason.
func (w *watch) tellAbsent(reason error) error {
	if w.app.remote != "" {
		w.tell(reason.Error() + "; trying again")
		return nil
	}
	w.app.tellOthers(w.stateDir)
	w.tell("no host is running; waiting for one")
	return nil
}

// maxTold bounds a line of the host, in characters.
const maxTold = 500

// tell prints a line of the host.
func (w *watch) tell(text string) {
	fmt.Fprintf(w.app.stderr, "toolhost: %s\n", head(line(text), maxTold))
}

// ofHost watches the running host until it ends. It does not become the host, since then another
// process could not.
func (w *watch) ofHost(ctx context.Context) error {
	c, err := w.app.approverClient(w.stateDir)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, stop := context.WithCancel(ctx)
	news := &feed{news: make(chan struct{}, 1)}
	var following sync.WaitGroup
	following.Go(func() { news.follow(ctx, c, w.app.command) }) // ends with stop
	defer func() {
		stop()
		following.Wait()
	}()
	select { // from here on, no change is missed
	case <-news.news:
	case <-ctx.Done():
	}
	w.tellBeginning(ctx, c)
	for ctx.Err() == nil {
		for _, notice := range news.takeNotices() {
			w.tell(notice)
		}
		if _, err := news.look(); err != nil {
			return err
		}
		open, err := w.open(ctx, c)
		if err != nil {
			return err
		}
		w.reached = true
		next := slices.IndexFunc(open, func(r httpapi.Approval) bool { return !w.left[r.ID] })
		if next >= 0 {
			err = w.show(ctx, c, news, open[next].ID, len(open)-1)
		} else {
			err = w.idle(ctx, news, len(open))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tellBeginning tells what went wrong before the watch began, unless the greeting and the log of
// this process did: which calls admins have stopped, and which plugins do not run.
func (w *watch) tellBeginning(ctx context.Context, c *client.Client) {
	if w.greeted {
		w.greeted = false
		return
	}
	w.tellStops(ctx, c)
	for _, why := range brokenPlugins(ctx, c) {
		w.tell(why)
	}
}

// tellStops tells which calls admins have stopped.
func (w *watch) tellStops(ctx context.Context, c *client.Client) {
	stops, err := c.Stops(ctx)
	if err != nil { // an older host has none, and any other error comes again
		return
	}
	for _, stop := range stops[:min(len(stops), maxNotices)] {
		w.tell("stopped " + stop.String())
	}
	if more := len(stops) - maxNotices; more > 0 {
		w.tell(fmt.Sprintf("and %d more: %s", more, w.app.command("stop-all --list")))
	}
}

// approverClient returns a client of the host that the command is for, who may decide.
func (a *app) approverClient(stateDir string) (*client.Client, error) {
	if a.remote != "" {
		return a.remoteClient()
	}
	return approverOf(stateDir)
}

// approverOf returns a client of the host that owns a state directory, with the approver's key.
func approverOf(stateDir string) (*client.Client, error) {
	key, err := auth.ReadKey(filepath.Join(stateDir, auth.ApproverKey))
	if err != nil {
		return nil, err
	}
	return client.New(client.Options{StateDir: stateDir, Token: key, Name: "toolhost", Session: "cli"})
}

// maxListed bounds the open approvals that are listed.
const maxListed = 1000

// open lists the open approvals, oldest first, and rings for the new ones.
func (w *watch) open(ctx context.Context, c *client.Client) ([]httpapi.Approval, error) {
	open, err := c.Approvals(ctx, client.ApprovalFilter{States: []approval.State{approval.Open}, Limit: maxListed})
	if err != nil {
		return nil, err
	}
	slices.Reverse(open)
	rung, left, rings := map[string]bool{}, map[string]bool{}, false
	for _, r := range open {
		rung[r.ID] = true
		rings = rings || !w.rung[r.ID]
		if w.left[r.ID] {
			left[r.ID] = true
		}
	}
	w.rung, w.left = rung, left
	if rings && w.bell {
		w.ring()
	}
	return open, nil
}

// ring rings the terminal's bell.
func (w *watch) ring() {
	if w.terminal != nil {
		fmt.Fprint(w.terminal.output, "\a") // which does not move a question
		return
	}
	fmt.Fprint(w.app.stderr, "\a")
}

// errChanged ends a wait when something has happened.
var errChanged = errors.New("something has happened")

// betweenLooks is the interval of checks whether a background job came to the foreground.
const betweenLooks = 500 * time.Millisecond

// idle waits until something happens, or until the person wants to see the calls that were left
// open.
func (w *watch) idle(ctx context.Context, news *feed, left int) error {
	switch {
	case w.terminal == nil || left == 0:
		select {
		case <-news.news:
		case <-ctx.Done():
		}
		return nil
	case !inForeground(w.terminal.input):
		timer := time.NewTimer(betweenLooks)
		defer timer.Stop()
		select {
		case <-news.news:
		case <-ctx.Done():
		case <-timer.C:
		}
		if inForeground(w.terminal.input) {
			clear(w.left) // these were printed, and no question was asked
		}
		return nil
	}
	question := fmt.Sprintf("calls left waiting: %d; Enter shows them again ", left)
	_, err := w.terminal.ask(ctx, question, func() error {
		changed, err := news.look()
		if err == nil && changed {
			err = errChanged
		}
		return err
	})
	switch {
	case errors.Is(err, errChanged), errors.Is(err, errResumed):
		return nil
	case err == nil:
		clear(w.left)
	}
	return err
}
