package journal

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var hours atomic.Int64 // the journal reads its clock on a goroutine of its own
	now := func() time.Time { return began.Add(time.Duration(hours.Load()) * time.Hour) }
	j, _ := openIn(t, t.TempDir(), Options{Now: now})
	end := func(user, tool, status string, took time.Duration, bytes int64) {
		t.Helper()
		r := Record{Call: "tc_1", User: user, Plugin: "fs", Tool: tool, Status: status, Duration: took, Bytes: bytes}
		if err := j.End(t.Context(), r, true); err != nil {
			t.Fatal(err)
		}
	}
	end("bob", "read_file", "success", time.Millisecond, 10)
	hours.Add(1)
	if err := j.Start(t.Context(), Record{Call: "tc_2", User: "ada", Plugin: "fs", Tool: "write_file"}); err != nil {
		t.Fatal(err)
	}
	end("ada", "write_file", "rejected", 1500*time.Microsecond, 0)
	end("ada", "read_file", "success", 2*time.Millisecond, 20)
	end("ada", "read_file", "error", 3*time.Millisecond, 0)
	hours.Add(1)
	end("bob", "read_file", "success", 4*time.Millisecond, 40)
	ada := []Usage{
		{User: "ada", Plugin: "fs", Tool: "read_file", Calls: 2, Errors: 1, Milliseconds: 5, Bytes: 20},
		{User: "ada", Plugin: "fs", Tool: "write_file", Calls: 1, Rejected: 1, Milliseconds: 1.5},
	}
	bob := func(calls int64, ms float64, bytes int64) Usage {
		return Usage{User: "bob", Plugin: "fs", Tool: "read_file", Calls: calls, Milliseconds: ms, Bytes: bytes}
	}
	for _, tt := range []struct {
		name string
		q    UsageQuery
		want []Usage
	}{
		{"all", UsageQuery{}, append(ada[:2:2], bob(2, 5, 50))},
		{"a user", UsageQuery{User: "ada"}, ada},
		{"nobody", UsageQuery{User: "carl"}, []Usage{}},
		{"since", UsageQuery{Since: now()}, []Usage{bob(1, 4, 40)}},
		{"until", UsageQuery{Until: now().Add(-time.Hour)}, []Usage{bob(1, 1, 10)}},
	} {
		got, err := j.Usage(t.Context(), tt.q)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: Usage = %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}
