package approval_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
)

// insertGrants writes grants of a user: each third for a tool, for a path, and for a
// command in a directory.
func (r *rig) insertGrants(tb testing.TB, user string, n int) error {
	tb.Helper()
	return r.store.Do(tb.Context(), func(tx *sql.Tx) error {
		for i := range n {
			name, path, pattern := fmt.Sprintf("t%d", i%100), "", ""
			switch i % 3 {
			case 0:
				name = fmt.Sprintf("whole%d", i)
			case 1:
				path = fmt.Sprintf("/w/d%d", i)
			case 2:
				pattern, path = `{"words":["npm","run"],"open":true}`, fmt.Sprintf("/w/c%d", i) // all under the same words
			}
			_, err := tx.ExecContext(tb.Context(), `INSERT INTO grants (id, user, plugin, tool, path, command, created_by, approval, created)
				VALUES (?, ?, 'p', ?, ?, ?, 'ada', 'ap_0', 1)`, fmt.Sprintf("gr_%d", i), user, name, path, pattern)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkCovering looks for the grants of a call on a path and of one with a command,
// which none covers, among none and among 10,000.
func BenchmarkCovering(b *testing.B) {
	path := approval.Call{User: "ada", Session: "s1", Plugin: "p", Tool: "t1", Subject: approval.Subject{Paths: []string{"/w/src/deep/in/x.go"}}}
	run := approval.Call{User: "ada", Session: "s1", Plugin: "p", Tool: "t2", Subject: approval.Subject{
		Paths:    []string{"/w"},
		Commands: []approval.Command{{Words: []string{"npm", "run", "build", "all"}, Least: 2}},
	}}
	for _, n := range []int{0, 1, 10_000} {
		r := open(b, b.TempDir(), approval.Options{})
		if err := r.insertGrants(b, "ada", n); err != nil {
			b.Fatal(err)
		}
		r.restart(b, approval.Options{})
		for name, call := range map[string]*approval.Call{"path": &path, "command": &run} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if got := r.grants.Covering(call); len(got) != 0 {
						b.Fatal(got)
					}
				}
			})
		}
	}
}

// One approved call, from the question to its use, while a thousand others are
// open.
func BenchmarkAskDecideSpend(b *testing.B) {
	r := open(b, b.TempDir(), approval.Options{MaxOpen: 2000})
	for n := range 1000 {
		r.ask(b, question(fmt.Sprintf(`{"open":%d}`, n)))
	}
	b.ResetTimer()
	for n := range b.N {
		q := question(fmt.Sprintf(`{"n":%d}`, n))
		record := r.ask(b, q)
		r.approve(b, record.ID)
		if err := r.service.Spend(b.Context(), record.ID, "tc_1", q.Binding()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkListThousand(b *testing.B) {
	r := open(b, b.TempDir(), approval.Options{MaxOpen: 2000})
	for n := range 1000 {
		r.ask(b, question(fmt.Sprintf(`{"open":%d}`, n)))
	}
	for b.Loop() {
		all, err := r.service.List(b.Context(), approval.Filter{By: approver("ada"), Limit: 1000})
		if err != nil || len(all) != 1000 {
			b.Fatal(len(all), err)
		}
	}
}

func BenchmarkShow(b *testing.B) {
	for _, size := range []int{1 << 10, 256 << 10, 4 << 20} {
		q := question(`{"text":"` + strings.Repeat(`a line of text that goes on\n`, size/28) + `"}`)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				approval.Show(approval.Record{Arguments: q.Arguments})
			}
		})
	}
}
