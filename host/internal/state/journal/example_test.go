package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

// A call with effects is recorded before it runs, and when it has ended.
func ExampleJournal() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "journal-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	j, err := journal.Open(ctx, journal.Options{Store: s, KeyPath: filepath.Join(dir, "keys", "journal.key")})
	if err != nil {
		panic(err)
	}
	defer j.Close(ctx)

	call := journal.Record{Call: "tc_1", Tool: "write_file", Tier: tool.SideEffecting, User: "ann", ApprovedBy: "user"}
	if err := j.Start(ctx, call); err != nil {
		panic(err) // the call must not run
	}
	call.Status, call.Duration = "success", 3*time.Millisecond
	if err := j.End(ctx, call, true); err != nil {
		panic(err)
	}

	rows, err := j.Query(ctx, journal.Query{User: "ann", OldestFirst: true})
	if err != nil {
		panic(err)
	}
	for _, r := range rows {
		fmt.Fprintf(os.Stdout, "%d %s %s %q\n", r.Seq, r.Kind, r.Tool, r.Status)
	}
	report, err := j.Verify(ctx)
	fmt.Fprintln(os.Stdout, report.Rows, "rows,", len(report.Problems), "problems", err)
	// Output:
	// 1 start write_file ""
	// 2 end write_file "success"
	// 2 rows, 0 problems <nil>
}
