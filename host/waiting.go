package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/sdk/tool"
)

// waiting is a call that is being waited for, however long a person takes to
// decide about it, and however often its host is replaced meanwhile: a command
// in another terminal may be the host for as long as it runs. The call has an
// idempotency key, so that it has its effect once, to how many hosts ever it is
// made.
type waiting struct {
	app  *app
	call client.Call

	outcome client.Outcome // as it is known so far
	unknown bool           // there is no such tool
	told    string         // the approval that the person at the terminal knows of
}

const (
	// onePoll is how long one question about a call waits for its end. When it
	// is asked about anew, the person at the terminal hears of it that late.
	onePoll = 2 * time.Second
	// maxHosts bounds the hosts that one call is made to.
	maxHosts = 10
)

// await makes a call and waits for its end.
func (a *app) await(ctx context.Context, call client.Call) (*waiting, error) {
	if call.IdempotencyKey == "" {
		call.IdempotencyKey = "cli-" + rand.Text()
	}
	call.Asks = true // the person at the terminal is told what it waits for
	w := &waiting{app: a, call: call}
	var err error
	for lost := 0; lost < maxHosts; {
		begun := w.outcome.ToolCallID != ""
		err = a.asAgent(ctx, func(c *client.Client) error { return w.wait(ctx, c) })
		if _, ok := errors.AsType[*config.Error](err); ok && begun {
			w.tellStranded()
		}
		if err == nil && w.ended() || err != nil && !hostGone(err) || pause(ctx, betweenHosts) != nil {
			break
		}
		if err != nil || !w.turnedAway() { // a host that stops says so each time
			lost++
		}
	}
	if err == nil && w.outcome.Status == client.Pending {
		err = errors.New("the call was canceled but has not ended yet")
	}
	return w, err
}

// wait makes the call, or finds the one that was made before, and waits for its
// end. When ctx ends, the call is canceled.
func (w *waiting) wait(ctx context.Context, c *client.Client) error {
	defer w.app.showProgress(ctx, c)()
	var err error
	w.outcome, err = c.Call(ctx, w.call)
	for err == nil && w.outcome.Status == client.Pending {
		w.tell()
		var next client.Outcome
		switch next, err = c.Outcome(ctx, w.outcome.ToolCallID, onePoll); {
		case err == nil:
			w.outcome = next
		case isStatus(err, http.StatusNotFound): // another host, which has not begun it
			err = client.ErrNoHost
		}
	}
	if ctx.Err() != nil && w.outcome.ToolCallID != "" {
		w.outcome, err = c.Cancel(context.WithoutCancel(ctx), w.outcome.ToolCallID)
	}
	if failure := w.outcome.Failure(); err == nil && failure != nil && failure.Code == tool.NotFound {
		_, lookup := c.Tool(ctx, w.call.Tool)
		w.unknown = lookup != nil
	}
	return err
}

// tell says what the call waits for, once.
func (w *waiting) tell() {
	id := w.outcome.ApprovalID
	if id == "" || id == w.told {
		return
	}
	news := "the call waits for approval"
	if w.told != "" {
		news = "the target of the call changed meanwhile, so the call waits for approval again"
	}
	w.told = id
	fmt.Fprintf(w.app.stderr, "toolhost: %s\nhint: %s\nhint: %s\n",
		news, w.app.command("approvals show "+id), w.app.command("approvals approve "+id))
}

// tellStranded says that the call's host has gone and that no other one can start: the
// configuration has mistakes by now, which are told after this.
func (w *waiting) tellStranded() {
	what := "its outcome is unknown"
	if w.turnedAway() || w.outcome.Status == client.Pending && w.outcome.ApprovalID != "" {
		what = "it did not run"
	}
	again := fmt.Sprintf("call %s --idempotency-key %s", w.call.Tool, w.call.IdempotencyKey)
	fmt.Fprintf(w.app.stderr, "toolhost: the host stopped while the call %s waited, and no other can start with this configuration: %s\nhint: fix the mistakes below, then repeat the call with its arguments: %s\n",
		w.outcome.ToolCallID, what, w.app.command(again))
}

// ended reports whether the call has ended, and not only its host: a call that
// a stopping host turned away is made to the next one.
func (w *waiting) ended() bool { return w.outcome.Status != client.Pending && !w.turnedAway() }

// turnedAway reports whether a host that stops did not run the call.
func (w *waiting) turnedAway() bool {
	failure := w.outcome.Failure()
	return failure != nil && failure.Code == tool.Unavailable && strings.HasPrefix(failure.Message, operation.Stopping)
}

// hostGone reports whether a host went away while it was asked.
func hostGone(err error) bool {
	return isStatus(err, http.StatusServiceUnavailable) || errors.Is(err, client.ErrNoHost) || errors.Is(err, client.ErrBroken)
}

// isStatus reports whether a host answered with a status.
func isStatus(err error, status int) bool {
	problem, ok := errors.AsType[*httpapi.Problem](err)
	return ok && problem.Status == status
}
