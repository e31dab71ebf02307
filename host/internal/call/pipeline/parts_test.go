package pipeline_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

// host is a pipeline with its real parts.
type host struct {
	*pipeline.Pipeline

	opts      pipeline.Options
	questions <-chan string // ids of questions to people
}

// newHost returns a pipeline with the tools of one plugin and its own state directory. The end
// of the test closes it.
func newHost(tb testing.TB, opts pipeline.Options, specs ...tool.Spec) *host {
	tb.Helper()
	if opts.Catalog == nil {
		opts.Catalog = newCatalog(tb, specs...)
	}
	h, err := openHost(context.WithoutCancel(tb.Context()), tb.TempDir(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(h.stop)
	return h
}

// openHost opens a pipeline over a state directory.
func openHost(ctx context.Context, dir string, opts pipeline.Options) (*host, error) {
	db, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	records, err := journal.Open(ctx, journal.Options{Store: db, KeyPath: filepath.Join(dir, "journal.key")})
	if err != nil {
		return nil, err
	}
	grants, err := approval.NewGrants(ctx, approval.GrantOptions{Store: db})
	if err != nil {
		return nil, err
	}
	questions := make(chan string, 1000)
	approvals, err := approval.New(ctx, approval.Options{Store: db, Grants: grants, Changed: func(r approval.Record) {
		if r.State == approval.Open {
			questions <- r.ID
		}
	}})
	if err != nil {
		return nil, err
	}
	if opts.Policy == nil {
		if opts.Policy, err = policy.New(policy.Options{}); err != nil {
			return nil, err
		}
	}
	stops, err := killswitch.New(ctx, db)
	if err != nil {
		return nil, err
	}
	opts.Stops = stops
	opts.Store, opts.Journal, opts.Grants, opts.Approvals, opts.Events = db, records, grants, approvals, event.NewBus()
	p, err := pipeline.New(opts)
	if err != nil {
		return nil, err
	}
	return &host{Pipeline: p, opts: opts, questions: questions}, nil
}

// stop closes all parts in order.
func (h *host) stop() {
	ctx := context.Background()
	_ = h.Close()
	_ = h.opts.Approvals.Close()
	_ = h.opts.Grants.Close()
	_ = h.opts.Journal.Close(ctx)
	_ = h.opts.Store.Close()
}

// approver may decide about the calls of the tests' user.
var approver = auth.Caller{User: "ann", Roles: auth.Approver}
