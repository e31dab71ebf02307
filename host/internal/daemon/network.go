package daemon

import (
	"context"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// connected publishes what becomes of a connection, and records its end.
func (d *Daemon) connected(ctx context.Context, c egress.Connection, open bool) {
	to := c.Target().String()
	state := event.ConnectionClosed
	switch {
	case open:
		state = event.ConnectionOpen
	case c.Refused:
		state = event.ConnectionRefused
	}
	d.parts.events.Publish(c.User, event.Connection{
		Plugin: c.Plugin, Call: c.Call, Host: to, State: state, Rule: c.Rule, Error: c.Error, Sent: c.Sent, Received: c.Received,
	})
	if open {
		return
	}
	r := journal.Record{
		Call: c.Call, Plugin: c.Plugin, User: c.User, Session: c.Session, About: to, Address: c.Address,
		Verdict: string(c.Verdict), Rule: c.Rule, ApprovedBy: c.By, Approval: c.Approval, Approver: c.Approver,
		Status: event.Success, Error: c.Error, Sent: c.Sent, Received: c.Received, Duration: c.Duration,
	}
	switch {
	case c.Refused:
		r.Status = event.Rejected
	case c.Error != "":
		r.Status = event.Error
	}
	if err := d.parts.journal.Connection(ctx, r); err != nil {
		d.opts.Logger.Error("a connection is not in the journal", "plugin", c.Plugin, "host", to, "error", err)
	}
}
