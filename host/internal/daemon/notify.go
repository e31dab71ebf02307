package daemon

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
)

// maxTold bounds the open questions that a new host tells people about.
const maxTold = 1000

// tellOpen tells people about the questions that the last host left open: it may have ended before it
// told them. Their messages have the same ids. A host for one command leaves that to the next one.
func (d *Daemon) tellOpen(ctx context.Context) error {
	if d.opts.Ephemeral || len(d.config.Load().Notifiers) == 0 {
		return nil
	}
	open, err := d.parts.approvals.List(ctx, approval.Filter{By: auth.Caller{Roles: auth.Admin}, States: []approval.State{approval.Open}, Limit: maxTold})
	if err != nil {
		return fmt.Errorf("tell people about open approvals: %w", err)
	}
	for i := range open { // the oldest first
		d.parts.notify.Changed(open[len(open)-1-i])
	}
	return nil
}

// approvalURL returns the address of the page about an approval, or of the host for the id ""; "" if
// the host does not serve HTTP.
func (d *Daemon) approvalURL(id string) string {
	url := d.URL()
	if url == "" || id == "" {
		return url
	}
	return url + "/approvals/" + id
}
