package approval_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/approval"
)

// insertGrants writes grants of a user for the tools t0, t1 and so on.
func (r *rig) insertGrants(tb testing.TB, user string, n int) error {
	tb.Helper()
	return r.store.Do(tb.Context(), func(tx *sql.Tx) error {
		for i := range n {
			_, err := tx.ExecContext(tb.Context(), `INSERT INTO grants (id, user, plugin, tool, scope, created_by, approval, created)
				VALUES (?, ?, 'p', ?, 'always', 'ada', 'ap_0', 1)`, fmt.Sprintf("gr_%d", i), user, fmt.Sprintf("t%d", i))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func BenchmarkCovering(b *testing.B) {
	r := open(b, b.TempDir(), approval.Options{})
	if err := r.insertGrants(b, "ada", 10_000); err != nil {
		b.Fatal(err)
	}
	r.restart(b, approval.Options{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, ok := r.grants.Covering("ada", "p", "t5000"); !ok {
				b.Error("no grant")
			}
			r.grants.Covering("ada", "p", "none")
		}
	})
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
		if err := r.desk.Spend(b.Context(), record.ID, "tc_1", q.Binding()); err != nil {
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
		all, err := r.desk.List(b.Context(), approval.Filter{By: approver("ada"), Limit: 1000})
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
