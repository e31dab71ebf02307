package sdk

import (
	"context"
	"errors"
	"sync"

	"github.com/toolhost/toolhost/sdk/tool"
)

var errCallEnded = errors.New("the call has ended")

// events sends the progress and the output of a call, one event at a time.
type events struct {
	mu           sync.Mutex // guards everything below
	ended        bool
	sendProgress func(tool.Progress) error
	sendChunk    func(tool.Chunk) error
}

func (e *events) progress(p tool.Progress) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended {
		// An error means that the caller is gone.
		_ = e.sendProgress(p)
	}
}

func (e *events) chunk(c tool.Chunk) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return errCallEnded
	}
	return e.sendChunk(c)
}

// end makes sure that nothing is sent after the result, even by goroutines that
// the tool has left running.
func (e *events) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
}

// gate counts the calls that run, and refuses new ones after it is closed. The
// zero gate refuses calls until the plugin is configured.
type gate struct {
	mu      sync.Mutex // guards everything below
	open    bool
	closed  bool
	running int
	idle    chan struct{}        // closed when no call runs; nil if drain does not wait
	calls   map[string]*admitted // by id
}

// admitted is a call that runs. The host may send the same id again while the
// first call is still ending.
type admitted struct {
	times int
	ended chan struct{} // closed when the last one has ended
}

func (g *gate) configured() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
}

// enter admits a call or returns the reason why not. An admitted call must leave.
func (g *gate) enter(id string) *tool.Error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return tool.Errorf(tool.Unavailable, "the plugin is stopping").WithRetry(0)
	case !g.open:
		return tool.Errorf(tool.Unavailable, "the plugin is not configured yet").WithRetry(0)
	}
	g.running++
	if g.calls == nil {
		g.calls = map[string]*admitted{}
	}
	if g.calls[id] == nil {
		g.calls[id] = &admitted{ended: make(chan struct{})}
	}
	g.calls[id].times++
	return nil
}

func (g *gate) leave(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if call := g.calls[id]; call.times > 1 {
		call.times--
	} else {
		close(call.ended)
		delete(g.calls, id)
	}
	g.running--
	if g.running == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// drainCall waits until a call has ended, or ctx ends.
func (g *gate) drainCall(ctx context.Context, id string) error {
	g.mu.Lock()
	call := g.calls[id]
	g.mu.Unlock()
	if call == nil {
		return nil
	}
	select {
	case <-call.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// drain closes the gate and waits until no call runs, or ctx ends.
func (g *gate) drain(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	if g.running == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run calls a tool. It always returns a result that a host accepts.
func (p *Plugin) run(ctx context.Context, c *Call) tool.Result {
	e := p.lookup(c.data.Tool)
	if e == nil {
		return tool.ErrorResult(tool.Errorf(tool.NotFound, "plugin %q has no tool %q", p.name, c.data.Tool))
	}
	if e.spec.Unavailable != "" { // the host sends no such call
		return tool.ErrorResult(tool.Errorf(tool.Unavailable, "the tool %q is not available: %s", c.data.Tool, e.spec.Unavailable))
	}
	var result tool.Result
	err := recovered(c.logger, c.data.Tool, func() (err error) {
		result, err = e.run(ctx, c, c.data.Arguments)
		return err
	})
	if failure := toError(ctx, c.data.ID, err); failure != nil {
		result.Error = failure
	}
	result.Error = presentable(c.logger, c.data.Tool, result.Error)
	return result
}

// preview returns what a call would do.
func (p *Plugin) preview(ctx context.Context, c *Call) (tool.Preview, *tool.Error) {
	e := p.lookup(c.data.Tool)
	if e == nil || e.preview == nil || e.spec.Unavailable != "" {
		return tool.Preview{}, tool.Errorf(tool.NotFound, "plugin %q has no preview of a tool %q", p.name, c.data.Tool)
	}
	var preview tool.Preview
	err := recovered(c.logger, c.data.Tool, func() (err error) {
		preview, err = e.preview(ctx, c, c.data.Arguments)
		return err
	})
	if failure := toError(ctx, c.data.ID, err); failure != nil {
		return tool.Preview{}, presentable(c.logger, c.data.Tool, failure)
	}
	return preview, nil
}
