package journal

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// readEnd is the one row of a read_only call, as the pipeline makes it.
func readEnd(i int) Record {
	return Record{
		Call: fmt.Sprintf("tc_0199f3a2-1c5e-7b1a-9c1d-%012x", i), Tool: "read_file", Plugin: "fs",
		Digest: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		Tier:   tool.ReadOnly, User: "alice", Client: "claude-code", Session: "0199f3a2-1c5e-7b1a-9c1d-3e4f5a6b7c8d",
		Arguments:     json.RawMessage(`{"path":"src/main.go","start_line":1,"end_line":200}`),
		ArgumentsHash: "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
		Verdict:       "allow", Where: "config.hcl:12", ApprovedBy: "auto", Status: "success",
		ResultDigest: "sha256:fd61a03af4f77d870fc21e05e7e80678095c92d808cfb3b5c279ee04c74aca13",
		Bytes:        5321, Attempts: 1, Duration: 1234 * time.Microsecond,
	}
}

// cpu is the time that the process has spent on processors.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkReadOnlyEnd measures what the journal costs a read_only call: one row that need not
// be durable at once. cpu-us/row is the time of the whole process, including writer, sync and
// garbage collection, less that of the same loop without a journal. Each commit has the rows
// that arrive within MaxLag: 100 at 2,000 calls a second.
func BenchmarkReadOnlyEnd(b *testing.B) {
	const rows = 100_000
	for _, perCommit := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("%dPerCommit", perCommit), func(b *testing.B) {
			loop := func(end func(r Record, durable bool)) time.Duration {
				before := cpu(b)
				for i := range rows {
					end(readEnd(i), (i+1)%perCommit == 0)
				}
				return cpu(b) - before
			}
			var total time.Duration
			for b.Loop() {
				j, closeAll := openIn(b, b.TempDir(), Options{})
				total += loop(func(r Record, durable bool) {
					if err := j.End(b.Context(), r, durable); err != nil {
						b.Fatal(err)
					}
				})
				total -= loop(func(Record, bool) {})
				closeAll()
			}
			b.ReportMetric(float64(total.Nanoseconds())/1000/rows/float64(b.N), "cpu-us/row")
		})
	}
}

// BenchmarkVerify measures how long a row takes to verify.
func BenchmarkVerify(b *testing.B) {
	const rows = 50_000
	j, closeAll := openIn(b, b.TempDir(), Options{})
	for i := range rows {
		if err := j.End(b.Context(), readEnd(i), i == rows-1); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		wantVerified(b, j, rows)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1000/rows/float64(b.N), "us/row")
	closeAll()
}

// BenchmarkDurableStart measures durable rows of 16 callers.
func BenchmarkDurableStart(b *testing.B) {
	const callers, rows = 16, 20_000
	var took time.Duration
	for b.Loop() {
		j, closeAll := openIn(b, b.TempDir(), Options{})
		var next atomic.Int64
		var wg sync.WaitGroup
		began := time.Now()
		for range callers {
			wg.Go(func() {
				for i := next.Add(1); i <= rows; i = next.Add(1) {
					if err := j.Start(b.Context(), readEnd(int(i))); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		took += time.Since(began)
		closeAll()
	}
	b.ReportMetric(rows*float64(b.N)/took.Seconds(), "rows/s")
}

// BenchmarkOpen measures how long a host waits for a journal of 100,000 rows.
func BenchmarkOpen(b *testing.B) {
	const rows = 100_000
	dir := b.TempDir()
	more(b, dir, rows, Options{})
	s := openStore(b, dir)
	var took time.Duration
	for b.Loop() {
		began := time.Now()
		j, err := Open(b.Context(), Options{Store: s, KeyPath: keyPath(dir)})
		took += time.Since(began)
		if err != nil {
			b.Fatal(err)
		}
		if err := j.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(took.Seconds()*1000/float64(b.N), "ms/open")
}
