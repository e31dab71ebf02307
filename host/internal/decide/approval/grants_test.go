package approval_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/sdk/tool"
)

// always approves a question with "always" and returns the grant.
func (r *rig) always(t *testing.T, user, name string) approval.Grant {
	t.Helper()
	q := question(`{}`)
	q.User, q.Tool = user, name
	record := r.ask(t, q)
	dec := approval.Decision{ID: record.ID, By: approver(user), Approve: true, Grant: &approval.Terms{}, Via: "cli"}
	if _, err := r.service.Decide(t.Context(), r.seeing(t, dec)); err != nil {
		t.Fatal(err)
	}
	if err := r.service.Spend(t.Context(), record.ID, "tc_1", q.Binding()); err != nil {
		t.Fatal(err)
	}
	grant, ok := r.covering(user, q.Plugin, name)
	if !ok {
		t.Fatalf("no grant covers %s of %s", name, user)
	}
	return grant
}

func (r *rig) use(tb testing.TB, id string) {
	tb.Helper()
	if err := r.grants.Use(tb.Context(), []string{id}); err != nil {
		tb.Errorf("Use = %v", err)
	}
}

func TestGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, t.TempDir(), approval.Options{})
		grant := r.always(t, "ada", "put")
		want := approval.Grant{
			ID: grant.ID, User: "ada", Plugin: "p", Tool: "put", Covers: "calls of put", State: approval.GrantActive,
			CreatedBy: "ada", Approval: grant.Approval, Created: grant.Created,
		}
		if diff := cmp.Diff(want, grant); diff != "" || !strings.HasPrefix(grant.ID, "gr_") || !strings.HasPrefix(grant.Approval, "ap_") {
			t.Errorf("the grant is %+v (-want +got):\n%s", grant, diff)
		}
		for _, other := range [][3]string{{"eve", "p", "put"}, {"ada", "q", "put"}, {"ada", "p", "delete"}, {"adap", "", "put"}} {
			if got, ok := r.covering(other[0], other[1], other[2]); ok {
				t.Errorf("Covering%q = %+v, want none", other, got)
			}
		}
		if again := r.always(t, "ada", "put"); again.ID != grant.ID {
			t.Errorf("a second answer made grant %s beside %s", again.ID, grant.ID)
		}
		r.restart(t, approval.Options{})
		if got, ok := r.covering("ada", "p", "put"); !ok || got.ID != grant.ID {
			t.Errorf("Covering after a restart = %+v, %t; want %s", got, ok, grant.ID)
		}
		if got, err := r.grants.Revoke(t.Context(), grant.ID, approver("ada")); err != nil || got.RevokedBy != "ada" || got.Revoked.IsZero() {
			t.Errorf("Revoke = %+v, %v", got, err)
		}
		if got, ok := r.covering("ada", "p", "put"); ok {
			t.Errorf("Covering after it was revoked = %+v, want none", got)
		}
		if _, err := r.grants.Revoke(t.Context(), grant.ID, approver("ada")); code(err) != tool.Conflict {
			t.Errorf("second Revoke = %v, want %s", err, tool.Conflict)
		}
		r.restart(t, approval.Options{})
		if got, ok := r.covering("ada", "p", "put"); ok {
			t.Errorf("Covering after it was revoked and a restart = %+v, want none", got)
		}
		if next := r.always(t, "ada", "put"); next.ID == grant.ID {
			t.Error("a grant that was revoked is in force again")
		}
		all, err := r.grants.List(t.Context(), approver("ada"), true)
		if err != nil || len(all) != 2 || all[1].ID != grant.ID || all[1].Revoked.IsZero() {
			t.Errorf("List = %+v, %v; want both, the newest first", all, err)
		}
	})
}

func TestGrantsAreForThoseWhoMaySeeThem(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	ada, bob := r.always(t, "ada", "put"), r.always(t, "bob", "put")
	for _, tt := range []struct {
		name string
		by   auth.Caller
		sees int
		code tool.Code // of revoking bob's
	}{
		{"an agent", auth.Caller{User: "bob", Roles: auth.Agent}, 0, tool.PermissionDenied},
		{"nobody", auth.Caller{User: "bob"}, 0, tool.NotFound},
		{"an approver", auth.Caller{User: "ada", Roles: auth.Approver}, 1, tool.NotFound},
		{"an approver for others", auth.Caller{User: "ada", Roles: auth.Approver, Approves: []string{"bob"}}, 2, ""},
	} {
		all, err := r.grants.List(t.Context(), tt.by, false)
		if err != nil || len(all) != tt.sees {
			t.Errorf("%s: List = %+v, %v; want %d", tt.name, all, err, tt.sees)
		}
		if _, err := r.grants.Revoke(t.Context(), bob.ID, tt.by); code(err) != tt.code {
			t.Errorf("%s: Revoke = %v, want %q", tt.name, err, tt.code)
		}
	}
	if _, err := r.grants.Revoke(t.Context(), ada.ID, auth.Caller{User: "root", Roles: auth.Admin}); err != nil {
		t.Errorf("an admin: Revoke = %v", err)
	}
}

func TestUsesAreWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, t.TempDir(), approval.Options{})
		grant := r.always(t, "ada", "put")
		onDisk := func() (n int64) {
			t.Helper()
			if err := r.store.Read().QueryRowContext(t.Context(), "SELECT uses FROM grants WHERE id = ?", grant.ID).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		use := func(n int) {
			var all sync.WaitGroup
			for range n {
				all.Go(func() { r.use(t, grant.ID) })
			}
			all.Wait()
		}
		check := func(uses int64, disk int64) {
			t.Helper()
			all, err := r.grants.List(t.Context(), approver("ada"), false)
			if err != nil || len(all) != 1 || all[0].Uses != uses || all[0].LastUsed.IsZero() {
				t.Errorf("List = %+v, %v; want %d uses", all, err, uses)
			}
			if n := onDisk(); n != disk {
				t.Errorf("%d uses on disk, want %d", n, disk)
			}
		}
		if err := r.grants.Use(t.Context(), []string{"gr_0"}); code(err) != tool.Conflict {
			t.Errorf("Use of no grant = %v, want %s", err, tool.Conflict)
		}
		use(100)
		check(100, 0)
		wait(10 * time.Second)
		synctest.Wait()
		check(100, 100)

		use(10)
		r.writable(t, false)
		wait(time.Minute)
		synctest.Wait()
		check(110, 100)
		r.writable(t, true)
		wait(time.Minute)
		synctest.Wait()
		check(110, 110)

		use(5)
		r.restart(t, approval.Options{}) // closing writes the rest
		check(115, 115)

		use(1)
		if _, err := r.grants.Revoke(t.Context(), grant.ID, approver("ada")); err != nil {
			t.Fatal(err)
		}
		wait(time.Minute)
		synctest.Wait()
		if n := onDisk(); n != 116 {
			t.Errorf("%d uses of the revoked grant on disk, want 116", n)
		}
		wait(91 * 24 * time.Hour)
		other := r.always(t, "ada", "other")
		r.use(t, other.ID)
		wait(time.Minute)
		synctest.Wait()
		all, err := r.grants.List(t.Context(), approver("ada"), true)
		if err != nil || len(all) != 1 {
			t.Errorf("List after 91 days = %+v, %v; want the revoked one gone", all, err)
		}
	})
}

func TestTooManyGrants(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{MaxOpen: 2000})
	if err := r.insertGrants(t, "ada", 10_000); err != nil {
		t.Fatal(err)
	}
	r.restart(t, approval.Options{})
	record := r.ask(t, question(`{}`))
	dec := approval.Decision{ID: record.ID, By: approver("ada"), Approve: true, Grant: &approval.Terms{}}
	if got := r.decide(t, dec); got != tool.ResourceExhausted {
		t.Errorf("Decide = %q, want %s", got, tool.ResourceExhausted)
	}
	if got := r.state(t, record.ID); got != approval.Open {
		t.Errorf("the record is %s, want it open: the decision was refused whole", got)
	}
	dec.Grant = nil
	if got := r.decide(t, dec); got != "" {
		t.Errorf("Decide once = %q, want it to count", got)
	}
}

// If one answer confirms a grant while it is being revoked, it is either revoked or given again,
// on disk as in memory.
func TestRevokeWhileGranted(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	grant := r.always(t, "ada", "put")
	for range 50 {
		record := r.ask(t, question(`{}`))
		var both sync.WaitGroup
		both.Go(func() {
			_, err := r.grants.Revoke(t.Context(), grant.ID, approver("ada"))
			if err != nil {
				t.Errorf("Revoke = %v", err)
			}
		})
		both.Go(func() {
			_, err := r.service.Decide(t.Context(), r.seeing(t, approval.Decision{ID: record.ID, By: approver("ada"), Approve: true, Grant: &approval.Terms{}}))
			if err != nil {
				t.Errorf("Decide = %v", err)
			}
		})
		both.Wait()
		inMemory, covered := r.covering("ada", "p", "put")
		onDisk, err := r.grants.List(t.Context(), approver("ada"), false)
		if err != nil {
			t.Fatal(err)
		}
		if covered != (len(onDisk) == 1) || covered && onDisk[0].ID != inMemory.ID || inMemory.ID == grant.ID {
			t.Fatalf("in memory %+v, on disk %+v", inMemory, onDisk)
		}
		if !covered {
			inMemory = r.always(t, "ada", "put")
		}
		grant = inMemory
	}
}
