package approval_test

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

// writable lets records and grants be written, or makes the database refuse
// that, as on a full disk.
func (r *rig) writable(t *testing.T, yes bool) {
	t.Helper()
	for _, table := range []string{"approvals", "grants"} {
		for _, change := range []string{"INSERT", "UPDATE"} {
			name := "full_" + table + "_" + change
			if yes {
				r.exec(t, "DROP TRIGGER "+name)
				continue
			}
			r.exec(t, "CREATE TRIGGER "+name+" BEFORE "+change+" ON "+table+" BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
		}
	}
}

// The database itself is full. The question is not asked, but operations that need no space
// still work.
func TestDatabaseFull(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	record := r.ask(t, question(`{}`))
	pages := func(n int) {
		err := r.store.Do(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", n))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	large := question(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
	pages(1) // that is, as many as there are
	if _, err := r.service.Ask(t.Context(), large); code(err) != tool.Unavailable || !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("Ask = %v, want %s because of %v", err, tool.Unavailable, store.ErrUnwritable)
	}
	r.approve(t, record.ID)
	pages(1 << 30)
	if got := r.ask(t, large); got.State != approval.Open {
		t.Errorf("Ask = %s, want it open", got.State)
	}
}

// While the disk is full, the service asks no question, records no decision and spends no
// approval. Once there is space, everything continues from the state on disk.
func TestDiskFull(t *testing.T) {
	var seen changes
	r := open(t, t.TempDir(), approval.Options{Changed: seen.add, MaxOpen: 2})
	q := question(`{}`)
	undecided, approved := r.ask(t, q), r.ask(t, q)
	r.approve(t, approved.ID)
	r.writable(t, false)
	if _, err := r.service.Ask(t.Context(), question(`{"n":1}`)); code(err) != tool.Unavailable {
		t.Errorf("Ask = %v, want %s", err, tool.Unavailable)
	}
	dec := approval.Decision{ID: undecided.ID, By: approver("ada"), Approve: true, Grant: &approval.Terms{}}
	if got := r.decide(t, dec); got != tool.Unavailable {
		t.Errorf("Decide = %q, want %s", got, tool.Unavailable)
	}
	if err := r.service.Spend(t.Context(), approved.ID, "tc_1", q.Binding()); code(err) != tool.Unavailable {
		t.Errorf("Spend = %v, want %s", err, tool.Unavailable)
	}
	if err := r.service.Cancel(t.Context(), undecided.ID); code(err) != tool.Unavailable {
		t.Errorf("Cancel = %v, want %s", err, tool.Unavailable)
	}
	if _, covered := r.covering("ada", "p", "put"); covered {
		t.Error("a grant is in force that is not on disk")
	}
	for id, want := range map[string]approval.State{undecided.ID: approval.Open, approved.ID: approval.Approved} {
		if got, err := r.service.Get(t.Context(), id); err != nil || got.State != want {
			t.Errorf("Get(%s) = %s, %v; want %s", id, got.State, err, want)
		}
	}
	if n := len(seen.all); n != 3 {
		t.Errorf("Changed was called %d times, want 3", n)
	}

	r.writable(t, true)
	r.ask(t, question(`{"n":1}`)) // there is room for one: the other was not counted
	if got := r.decide(t, dec); got != "" {
		t.Errorf("Decide = %q, want it to count", got)
	}
	if _, covered := r.covering("ada", "p", "put"); !covered {
		t.Error("the grant is not in force")
	}
	if err := r.service.Spend(t.Context(), approved.ID, "tc_1", q.Binding()); err != nil {
		t.Errorf("Spend = %v", err)
	}
}

// Those who wait are not kept waiting by a disk that is full, and the end is
// written as soon as it can be.
func TestExpiryOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, t.TempDir(), approval.Options{Timeout: time.Minute})
		q := question(`{}`)
		record := r.ask(t, q)
		r.writable(t, false)
		if _, err := r.service.Wait(t.Context(), record.ID); code(err) != tool.Unavailable {
			t.Errorf("Wait = %v, want %s", err, tool.Unavailable)
		}
		if got := r.decide(t, approval.Decision{ID: record.ID, By: approver("ada"), Approve: true}); got != tool.Unavailable {
			t.Errorf("Decide = %q, want %s", got, tool.Unavailable)
		}
		r.writable(t, true)
		wait(2 * time.Second)
		synctest.Wait()
		if got := r.state(t, record.ID); got != approval.Expired {
			t.Errorf("it is %s, want it expired", got)
		}
		if again := r.ask(t, q); again.ID == record.ID {
			t.Error("Ask gave a record whose time had passed")
		}
	})
}

// A row that differs from the written one is refused, for any kind of damage; the others work.
func TestDamagedRows(t *testing.T) {
	for _, tt := range []struct {
		name, damage string
	}{
		{"no JSON", `UPDATE approvals SET question = '{' WHERE id = ?`},
		{"another path in the question", `UPDATE approvals SET question = replace(question, 'a.txt', 'b.txt') WHERE id = ?`},
		{"another path in the arguments", `UPDATE approvals SET content = replace(content, 'a.txt', 'b.txt') WHERE id = ?`},
		{"another user", `UPDATE approvals SET user = 'eve' WHERE id = ?`},
		{"another call", `UPDATE approvals SET binding = 'x' WHERE id = ?`},
		{"another expiry", `UPDATE approvals SET expires = expires + 1 WHERE id = ?`},
		{"another sum", `UPDATE approvals SET question_sum = x'00' WHERE id = ?`},
		{"no content", `UPDATE approvals SET content = '', content_sum = x'' WHERE id = ?`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := open(t, t.TempDir(), approval.Options{Timeout: time.Minute})
				q := question(`{"path":"a.txt"}`)
				damaged, whole := r.ask(t, q), r.ask(t, question(`{}`))
				r.exec(t, "DROP TRIGGER approvals_fixed")
				if n := r.exec(t, tt.damage, damaged.ID); n != 1 {
					t.Fatalf("%d rows were damaged, want 1", n)
				}
				r.restart(t, approval.Options{Timeout: time.Minute})
				if got, err := r.service.Get(t.Context(), damaged.ID); code(err) != tool.Internal {
					t.Errorf("Get = %+v, %v; want %s", got, err, tool.Internal)
				}
				if got := r.decide(t, approval.Decision{ID: damaged.ID, By: approver("ada"), Approve: true}); got != tool.Internal {
					t.Errorf("Decide = %q, want %s", got, tool.Internal)
				}
				if again, err := r.service.Ask(t.Context(), q); err == nil && again.ID == damaged.ID {
					t.Error("Ask gave the damaged record to a call")
				}
				r.approve(t, whole.ID)
				if all, err := r.service.List(t.Context(), approval.Filter{By: approver("ada")}); err != nil || len(all) == 0 {
					t.Errorf("List = %v, %v; want the others", all, err)
				}
				wait(2 * time.Minute)
				synctest.Wait()
				if got := r.state(t, damaged.ID); got != approval.Expired {
					t.Errorf("the damaged record is %s, want it expired", got)
				}
			})
		})
	}
}

// Damage with a valid checksum goes unnoticed: a question about a.txt is then shown, and
// approved, as if it were about b.txt.
func TestDamagedRowWithoutTheGuard(t *testing.T) {
	for _, fitting := range []bool{false, true} { // the checksum; otherwise as in TestDamagedRows
		r := open(t, t.TempDir(), approval.Options{})
		id := r.ask(t, question(`{"path":"a.txt"}`)).ID
		r.exec(t, "DROP TRIGGER approvals_fixed")
		r.exec(t, `UPDATE approvals SET content = replace(content, 'a.txt', 'b.txt') WHERE id = ?`, id)
		if fitting {
			var content []byte
			if err := r.store.Read().QueryRowContext(t.Context(), "SELECT content FROM approvals WHERE id = ?", id).Scan(&content); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(content)
			r.exec(t, "UPDATE approvals SET content_sum = ? WHERE id = ?", sum[:], id)
		}
		shown, err := r.service.Get(t.Context(), id)
		if damage := err == nil && strings.Contains(string(shown.Arguments), "b.txt"); damage != fitting {
			t.Errorf("with a sum that fits = %t, Get = %s, %v", fitting, shown.Arguments, err)
		}
		if got := r.decide(t, approval.Decision{ID: id, By: approver("ada"), Approve: true}); (got == "") != fitting {
			t.Errorf("with a sum that fits = %t, Decide = %q", fitting, got)
		}
	}
}
