package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxRefused bounds the refused destinations that a result names.
	maxRefused = 8
	// maxConnectQuestions bounds the questions about connections of one call.
	maxConnectQuestions = 8
)

// network is what people said about the connections of one call. An answer holds until the call
// ends: a program makes many connections to one host. The zero value is ready to use.
type network struct {
	mu      sync.Mutex // guards the fields below
	asking  chan struct{}
	answers map[string]connectAnswer // by destination
	open    map[string]bool          // approvals that were asked for; false if no connection waits for it
	asked   int                      // how many questions there were
	ended   bool                     // the call has: no question may stay open
	refused []string                 // destinations and reasons, for the caller
}

type connectAnswer struct {
	permission tool.Permission
	err        *tool.Error
}

// enter waits until no other connection of the call asks a person. The caller calls leave.
func (n *network) enter(ctx context.Context) (leave func(), err error) {
	n.mu.Lock()
	if n.asking == nil {
		n.asking = make(chan struct{}, 1)
	}
	asking := n.asking
	n.mu.Unlock()
	select {
	case asking <- struct{}{}:
		return func() { <-asking }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (n *network) answer(to string) (connectAnswer, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a, ok := n.answers[to]
	return a, ok
}

// remember keeps an answer for the rest of the call.
func (n *network) remember(to string, a connectAnswer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers == nil {
		n.answers = make(map[string]connectAnswer)
	}
	n.answers[to] = a // bounded: a person answered each
	if a.err == nil { // attempts before were given up
		n.refused = slices.DeleteFunc(n.refused, func(text string) bool { return strings.HasPrefix(text, to+" (") })
	}
}

// refuse notes a refused destination for the caller.
func (n *network) refuse(to, reason string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := to + " (" + reason + ")"
	if len(n.refused) < maxRefused && !slices.Contains(n.refused, text) {
		n.refused = append(n.refused, text)
	}
}

// connect decides about a connection of a call that its plugin's configuration does not allow.
// Grants and earlier answers of the call come first, then a person is asked. callCtx is the call's;
// the end of ctx is that of the connection.
func (p *Pipeline) connect(ctx, callCtx context.Context, c *call, clock *clock, d tool.Destination, wanted bool) (tool.Permission, *tool.Error) {
	to := net.JoinHostPort(d.Host, strconv.Itoa(int(d.Port)))
	if !wanted {
		c.network.refuse(to, d.Reason)
		return tool.Permission{}, nil
	}
	if permission, err, known := p.known(ctx, c, to); known { // although the call asks about another host
		return permission, err
	}
	defer clock.stop()()
	leave, err := c.network.enter(ctx)
	if err != nil {
		return tool.Permission{}, tool.AsError(err)
	}
	defer leave()
	if permission, err, known := p.known(ctx, c, to); known {
		return permission, err
	}
	permission, asked := p.askToConnect(ctx, callCtx, c, d, to)
	if asked != nil {
		c.network.refuse(to, asked.Message)
		if asked.Code != tool.Rejected {
			return tool.Permission{}, asked // the next connection may be luckier
		}
	}
	c.network.remember(to, connectAnswer{permission, asked})
	return permission, asked
}

// known returns the answer about a connection that the call has already, or that of a grant.
func (p *Pipeline) known(ctx context.Context, c *call, to string) (permission tool.Permission, refused *tool.Error, known bool) {
	if a, ok := c.network.answer(to); ok {
		return a.permission, a.err, true
	}
	if err := p.refuseStopped(c); err != nil {
		return tool.Permission{}, tool.AsError(err), true
	}
	about := p.connectSubject(c, to)
	ids := p.opts.Grants.Covering(&about)
	if len(ids) == 0 {
		return tool.Permission{}, nil, false
	}
	if err := p.opts.Grants.Use(ctx, ids); err != nil { // it has ended meanwhile
		return tool.Permission{}, nil, false //nolint:nilerr // then a person is asked
	}
	permission = tool.Permission{By: string(policy.ByGrant), Approval: ids[0]}
	c.network.remember(to, connectAnswer{permission: permission})
	return permission, nil, true
}

// connectSubject returns a connection as grants see it.
func (p *Pipeline) connectSubject(c *call, to string) approval.Call {
	about := approval.Call{
		User: c.Caller.User, Session: c.Caller.Session, Plugin: c.entry.Plugin, Tool: approval.Connect,
		Subject: approval.Subject{Host: to}, Basis: p.opts.Catalog.Basis(c.entry.Plugin),
	}
	about.Basis.Program = c.entry.Digest // a grant does not cover another program
	return about
}

// askToConnect asks a person about a connection.
func (p *Pipeline) askToConnect(ctx, callCtx context.Context, c *call, d tool.Destination, to string) (tool.Permission, *tool.Error) {
	if !c.network.mayAsk() {
		return tool.Permission{}, tool.Errorf(tool.PermissionDenied, "no connection to %s: the call has asked about %d hosts, the most allowed", to, maxConnectQuestions).
			WithHint("make a call that needs fewer hosts, or list them in network.allow of the plugin")
	}
	about := p.connectSubject(c, to)
	p.opts.Grants.Covering(&about) // notes grants that are paused
	question, err := p.connectQuestion(c, d, to, &about)
	if err != nil {
		return tool.Permission{}, tool.AsError(err)
	}
	record, err := p.opts.Approvals.Ask(ctx, question)
	if err != nil {
		return tool.Permission{}, tool.AsError(err)
	}
	if record.State == approval.Open {
		if !c.network.waits(record.ID, true) { // the call has ended while it asked
			return tool.Permission{}, p.abandon(ctx, record.ID)
		}
		if record, err = p.awaitConnect(ctx, callCtx, c, record); err != nil {
			return tool.Permission{}, tool.AsError(err)
		}
	}
	if err := answered(record); err != nil {
		return tool.Permission{Approval: record.ID, Approver: record.DecidedBy}, refusedConnection(to, err)
	}
	if err := p.opts.Approvals.Spend(ctx, record.ID, c.id, question.Binding()); err != nil {
		return tool.Permission{}, tool.AsError(err)
	}
	return tool.Permission{By: string(policy.ByUser), Approval: record.ID, Approver: record.DecidedBy}, nil
}

// connectQuestion returns the question about a connection.
func (p *Pipeline) connectQuestion(c *call, d tool.Destination, to string, about *approval.Call) (approval.Question, error) {
	arguments, err := json.Marshal(struct {
		Host string `json:"host"`
		Port uint16 `json:"port"`
	}{d.Host, d.Port})
	return approval.Question{
		Call: c.id, User: c.Caller.User, Client: c.Caller.Client, Session: c.Caller.Session,
		Plugin: c.entry.Plugin, Tool: approval.Connect, Digest: c.entry.Digest, Definition: c.entry.Definition, Tier: c.tier,
		Verdict: policy.Ask, Rule: "ask of its network block", Arguments: arguments,
		Preview:        &tool.Preview{Summary: fmt.Sprintf("%s wants to connect to %s", c.entry.Spec.Name, to)},
		PolicyRevision: p.current(c).Policy.Revision(), Context: c.Context,
		Standing: true, Subject: about.Subject, Given: about.Basis, Paused: about.Paused,
	}, err
}

// awaitConnect waits for the answer about a connection. If the connection ends, the question stays
// for the next attempt to connect: many programs give up soon and try again.
func (p *Pipeline) awaitConnect(ctx, callCtx context.Context, c *call, record approval.Record) (approval.Record, error) {
	c.operation.AwaitApproval(record.ID)
	p.publishState(c, event.AwaitingApproval)
	defer func() {
		c.operation.Resume()
		if callCtx.Err() == nil { // otherwise the end of the call publishes the state
			p.publishState(c, event.ToolExecution)
		}
	}()
	p.remind(c)
	decided, err := p.opts.Approvals.Wait(ctx, record.ID)
	switch {
	case err == nil:
		return decided, nil
	case ctx.Err() == nil:
		return record, err
	}
	c.network.waits(record.ID, false)
	p.opts.Approvals.Release(record.ID)
	return record, tool.Errorf(tool.Canceled, "the connection was given up before a person answered")
}

func refusedConnection(to string, err error) *tool.Error {
	e := tool.AsError(err)
	refused := tool.Errorf(e.Code, "no connection to %s: %s", to, e.Message)
	if e.Hint != "" {
		return refused.WithHint("%s", e.Hint)
	}
	return refused
}

// abandon cancels a question of a call that has ended.
func (p *Pipeline) abandon(ctx context.Context, id string) *tool.Error {
	p.endQuestion(ctx, id, p.opts.Approvals.Cancel)
	return tool.Errorf(tool.Canceled, "the call has ended")
}

// endQuestion ends a question about a connection of a call that has ended.
func (p *Pipeline) endQuestion(ctx context.Context, id string, end func(context.Context, string) error) {
	if err := end(context.WithoutCancel(ctx), id); err != nil {
		p.opts.Logger.Error("a question about a connection stays open although its call has ended", "approval", id, "error", err)
	}
}

// mayAsk reports whether the call may ask about another connection.
func (n *network) mayAsk() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	return n.asked <= maxConnectQuestions
}

// waits notes whether a connection waits for an approval. It returns false if the call has ended.
func (n *network) waits(id string, waiting bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return false
	}
	if n.open == nil {
		n.open = make(map[string]bool)
	}
	n.open[id] = waiting
	return true
}

// begin lets connections ask, until endNetwork.
func (n *network) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = false
}

// endNetwork cancels the questions about connections of a call that has ended, except those that
// another call waits for by now. A stopping host leaves them, as those about calls.
func (p *Pipeline) endNetwork(ctx context.Context, c *call) {
	c.network.mu.Lock()
	open := c.network.open
	c.network.open, c.network.ended = nil, true
	c.network.mu.Unlock()
	if cause := context.Cause(ctx); errors.Is(cause, operation.ErrStopping) || errors.Is(cause, killswitch.ErrStopped) {
		return
	}
	for id, waiting := range open {
		end := p.opts.Approvals.Abandon
		if waiting {
			end = p.opts.Approvals.Cancel
		}
		p.endQuestion(ctx, id, end)
	}
}

// noteRefused adds the connections that were refused during a call to its result, since programs report
// them badly, and reports whether there were any.
func (c *call) noteRefused(result tool.Result) (noted tool.Result, refused bool) {
	c.network.mu.Lock()
	all := c.network.refused
	c.network.mu.Unlock()
	if len(all) == 0 {
		return result, false
	}
	text := "the network refused connections of this call: " + strings.Join(all, ", ")
	if e := result.Error; e != nil {
		if first, _, _ := strings.Cut(all[0], " "); !strings.Contains(e.Message, first) {
			result.Error = e.WithHint("%s", strings.TrimPrefix(e.Hint+"; "+text, "; "))
		}
		return result, true
	}
	result.Content = append(slices.Clip(result.Content), tool.Text("[toolhost: "+text+"]"))
	return result, true
}
