package approval_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// rig is an approval service with its own store.
type rig struct {
	tb      testing.TB
	dir     string
	store   *store.Store
	grants  *approval.Grants
	service *approval.Service
	clock   *wall
}

// open opens an approval service over the store in dir; it is closed with the test, or by
// close.
func open(tb testing.TB, dir string, opts approval.Options, basis ...func(string) catalog.Basis) *rig {
	tb.Helper()
	grants := approval.GrantOptions{Now: opts.Now}
	if len(basis) > 0 {
		grants.Basis = basis[0]
	}
	s, err := store.Open(tb.Context(), store.Options{Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	r := &rig{tb: tb, dir: dir, store: s, clock: &wall{}}
	tb.Cleanup(func() { r.close(tb) })
	grants.Store = s
	r.grants, err = approval.NewGrants(tb.Context(), grants)
	if err != nil {
		tb.Fatal(err)
	}
	opts.Store, opts.Grants = s, r.grants
	r.service, err = approval.New(tb.Context(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func (r *rig) close(tb testing.TB) {
	tb.Helper()
	if r.service != nil {
		if err := r.service.Close(); err != nil {
			tb.Error(err)
		}
	}
	if r.grants != nil {
		if err := r.grants.Close(); err != nil {
			tb.Error(err)
		}
	}
	if err := r.store.Close(); err != nil {
		tb.Error(err)
	}
}

// session is one as the host makes them.
const session = "mcp_1"

// terms are those of a grant without bounds, or none.
func terms(grant bool) *approval.Terms {
	if !grant {
		return nil
	}
	return &approval.Terms{}
}

// covering returns the grant that covers the calls of a tool by a user, if there is one.
func (r *rig) covering(user, plugin, name string) (approval.Grant, bool) {
	r.tb.Helper()
	ids := r.grants.Covering(&approval.Call{User: user, Plugin: plugin, Tool: name, Session: session})
	all, err := r.grants.List(r.tb.Context(), auth.Caller{Roles: auth.Admin}, true)
	if err != nil {
		r.tb.Fatal(err)
	}
	for _, grant := range all {
		if slices.Contains(ids, grant.ID) {
			return grant, true
		}
	}
	return approval.Grant{}, false
}

// question is a call of ada's.
func question(arguments string) approval.Question {
	return approval.Question{
		Call: "tc_1", User: "ada", Client: "claude", Session: session, Plugin: "p", Tool: "put", Digest: "sha256:1",
		Tier: tool.SideEffecting, Verdict: policy.Ask, Rule: "tier side_effecting", Standing: true,
		PolicyRevision: "sha256:2", Arguments: json.RawMessage(arguments),
	}
}

func approver(user string) auth.Caller {
	return auth.Caller{User: user, Client: "cli", Roles: auth.Approver | auth.Admin}
}

func (r *rig) ask(tb testing.TB, q approval.Question) approval.Record {
	tb.Helper()
	record, err := r.service.Ask(tb.Context(), q)
	if err != nil {
		tb.Fatalf("Ask = %v", err)
	}
	return record
}

// seeing returns a decision by an approver who has seen the record, unless dec sets what they
// saw.
func (r *rig) seeing(tb testing.TB, dec approval.Decision) approval.Decision {
	tb.Helper()
	if dec.ArgumentsHash != "" || dec.PreviewDigest != "" {
		return dec
	}
	if record, err := r.service.Get(tb.Context(), dec.ID); err == nil {
		dec.ArgumentsHash, dec.PreviewDigest = record.ArgumentsHash, record.PreviewDigest
	}
	return dec
}

func (r *rig) approve(tb testing.TB, id string) approval.Record {
	tb.Helper()
	record, err := r.service.Decide(tb.Context(), r.seeing(tb, approval.Decision{ID: id, By: approver("ada"), Approve: true, Via: "cli"}))
	if err != nil {
		tb.Fatalf("Decide = %v", err)
	}
	return record
}

func (r *rig) reject(tb testing.TB, id string) {
	tb.Helper()
	if _, err := r.service.Decide(tb.Context(), r.seeing(tb, approval.Decision{ID: id, By: approver("ada"), Message: "no", Via: "cli"})); err != nil {
		tb.Fatalf("Decide = %v", err)
	}
}

func TestApprovedCallRunsOnce(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	q := question(`{"path":"a.txt"}`)
	record := r.ask(t, q)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answered := make(chan approval.Record, 1)
	go func() {
		got, err := r.service.Wait(ctx, record.ID)
		if err != nil {
			t.Errorf("Wait = %v", err)
		}
		answered <- got
	}()
	r.approve(t, record.ID)
	if got := <-answered; got.State != approval.Approved || got.DecidedBy != "ada" || got.Via != "cli" {
		t.Errorf("Wait = %+v, want it approved by ada over cli", got)
	}
	if err := r.service.Spend(ctx, record.ID, "tc_1", q.Binding()); err != nil {
		t.Errorf("Spend = %v", err)
	}
	if err := r.service.Spend(ctx, record.ID, "tc_1", q.Binding()); tool.AsError(err).Code != tool.Conflict {
		t.Errorf("second Spend = %v, want %s", err, tool.Conflict)
	}
}
