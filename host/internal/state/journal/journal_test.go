package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolhost/toolhost/sdk/tool"
)

// noDeadline is for the ends of tests, when their own context has ended.
func noDeadline() context.Context { return context.Background() }

// full is a record with every field that a caller sets.
func full() Record {
	return Record{
		Call: "tc_1", Tool: "write_file", Plugin: "fs", Digest: "sha256:aa", Tier: tool.SideEffecting,
		User: "ann", Client: "client 1.0", Session: "s1",
		Arguments: json.RawMessage(`{"content":"a\nb","path":"x"}`), ArgumentsHash: "sha256:bb", About: "x", Context: "as the user wants",
		Verdict: "ask", Rule: "no secrets", Where: "config.hcl:3", ApprovedBy: "user", Approval: "ap_1",
		Approver: "bea", Via: "elicitation",
		Status: "error", Code: "failed", Error: "näh: \"no\"\u0000", ResultDigest: "sha256:cc", Bytes: 7, Attempts: 2, Repairs: 1,
		Duration: 1500 * time.Microsecond,
	}
}

func start1(tb testing.TB, j *Journal, r Record) {
	tb.Helper()
	if err := j.Start(tb.Context(), r); err != nil {
		tb.Fatal(err)
	}
}

func end1(tb testing.TB, j *Journal, r Record) {
	tb.Helper()
	if err := j.End(tb.Context(), r, true); err != nil {
		tb.Fatal(err)
	}
}

// all returns all rows, oldest first.
func all(tb testing.TB, j *Journal) []Record {
	tb.Helper()
	var rows []Record
	for after := int64(0); ; {
		page, err := j.Query(tb.Context(), Query{After: after, Limit: maxLimit, OldestFirst: true})
		if err != nil {
			tb.Fatal(err)
		}
		if len(page) == 0 {
			return rows
		}
		rows = append(rows, page...)
		after = page[len(page)-1].Seq
	}
}

// wantVerified fails the test unless the journal is as it was written.
func wantVerified(tb testing.TB, j *Journal, rows int64) {
	tb.Helper()
	report, err := j.Verify(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	if len(report.Problems) > 0 || report.Rows != rows {
		tb.Fatalf("Verify = %+v, want %d rows and no problems", report, rows)
	}
}

func TestRecordsAreKept(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 3, 1, 12, 0, 0, 5_000_000, time.UTC)
	j, closeAll := openIn(t, dir, Options{Now: func() time.Time { return now }})
	in := full()
	in.Seq, in.Kind, in.Time, in.ClockBack, in.ArgumentsSize, in.Prev, in.Hash = 99, Notice, now.Add(time.Hour), true, 5, "x", "y"
	start1(t, j, in)
	end1(t, j, in)
	closeAll()
	j, _ = openIn(t, dir, Options{})
	got := all(t, j)
	if len(got) != 2 {
		t.Fatalf("%d rows, want 2", len(got))
	}
	for i, r := range got {
		want := full()
		want.Seq, want.Kind, want.Time, want.Hash = int64(i+1), []Kind{Start, End}[i], now, r.Hash
		if i > 0 {
			want.Prev = got[i-1].Hash
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("row %d (-want +got):\n%s", i+1, diff)
		}
		if !strings.HasPrefix(r.Hash, "sha256:") {
			t.Errorf("hash of row %d = %q", i+1, r.Hash)
		}
	}
	wantVerified(t, j, 2)

	// Exported rows can be read back.
	data, err := json.Marshal(got[1])
	if err != nil {
		t.Fatal(err)
	}
	var back Record
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got[1], back); diff != "" {
		t.Errorf("through JSON (-want +got):\n%s", diff)
	}
	for _, want := range []string{`"time":"2026-03-01T12:00:00.005Z"`, `"tier":"side_effecting"`, `"duration_ms":1.5`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("JSON %s lacks %s", data, want)
		}
	}
	empty, err := json.Marshal(Record{Kind: End, Time: now})
	if want := `{"kind":"end","time":"2026-03-01T12:00:00.005Z"}`; err != nil || string(empty) != want {
		t.Errorf("JSON of an empty record = %s, %v, want %s", empty, err, want)
	}
}

func TestCallsNeedAnID(t *testing.T) {
	j, _ := openIn(t, t.TempDir(), Options{})
	for _, call := range []string{"", strings.Repeat("x", maxText+1)} {
		if err := j.Start(t.Context(), Record{Call: call}); err == nil {
			t.Errorf("Start of a call with an id of %d bytes: no error", len(call))
		}
	}
	start1(t, j, full())
	if err := j.Start(t.Context(), full()); err == nil {
		t.Error("a second Start of a call: no error")
	}
}

// TestLag distinguishes a durable row from one that may be written later.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, closeAll := openIn(t, t.TempDir(), Options{MaxLag: 80 * time.Millisecond})
		began := time.Now()
		if err := j.End(t.Context(), readEnd(1), false); err != nil {
			t.Fatal(err)
		}
		if got := len(all(t, j)); got != 0 || time.Since(began) != 0 {
			t.Errorf("%d rows after %v: End waited, but was not to", got, time.Since(began))
		}
		<-time.After(80 * time.Millisecond)
		synctest.Wait()
		if got := len(all(t, j)); got != 1 {
			t.Errorf("%d rows after MaxLag, want 1", got)
		}
		// A durable row takes those before it along.
		if err := j.End(t.Context(), readEnd(2), false); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		start1(t, j, full())
		if got := len(all(t, j)); got != 3 || time.Since(began) != 0 {
			t.Errorf("%d rows %v after a durable one, want 3 at once", got, time.Since(began))
		}
		closeAll()
	})
}

func TestCloseWritesWhatWaits(t *testing.T) {
	dir := t.TempDir()
	j, closeAll := openIn(t, dir, Options{MaxLag: time.Hour})
	for i := range 10 {
		if err := j.End(t.Context(), readEnd(i), false); err != nil {
			t.Fatal(err)
		}
	}
	closeAll()
	if err := j.End(t.Context(), readEnd(11), false); !errors.Is(err, ErrClosed) {
		t.Errorf("End after Close = %v, want ErrClosed", err)
	}
	if err := j.Start(t.Context(), readEnd(11)); !errors.Is(err, ErrClosed) {
		t.Errorf("Start after Close = %v, want ErrClosed", err)
	}
	j, _ = openIn(t, dir, Options{})
	wantVerified(t, j, 10)
}

// TestFullQueue keeps the writer busy until the queue is full: then End waits too, for as long
// as its context allows.
func TestFullQueue(t *testing.T) {
	j, _ := openIn(t, t.TempDir(), Options{})
	busy, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := j.opts.Store.Do(t.Context(), func(*sql.Tx) error {
			close(busy)
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-busy
	full := errors.New("the queue is full")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error)
	wg.Go(func() { // until it has to wait
		for i := 0; ; i++ {
			if err := j.End(ctx, readEnd(i), false); err != nil {
				ended <- fmt.Errorf("%d rows: %w", i, err)
				return
			}
			j.mu.Lock()
			if j.queue.full() {
				cancel(full)
			}
			j.mu.Unlock()
		}
	})
	err := <-ended
	var n int64
	if _, scan := fmt.Sscanf(err.Error(), "%d rows", &n); scan != nil || !errors.Is(err, full) || n < maxQueued || n > maxQueued+maxBatch {
		t.Errorf("End of many rows = %v, want that it waits after %d, or a batch more", err, maxQueued)
	}
	wg.Go(func() { // this one waits until there is room
		if err := j.End(t.Context(), readEnd(int(n)), true); err != nil {
			t.Error(err)
		}
	})
	close(release)
	wg.Wait()
	wantVerified(t, j, n+1)
}

func TestStartGivesUp(t *testing.T) {
	j, _ := openIn(t, t.TempDir(), Options{})
	gone := errors.New("gone")
	for range 200 { // the context ends before, during and after the row is queued
		ctx, cancel := context.WithCancelCause(t.Context())
		r := full()
		r.Call = fmt.Sprint("tc_", time.Now().UnixNano())
		var wg sync.WaitGroup
		wg.Go(func() { cancel(gone) })
		err := j.Start(ctx, r)
		wg.Wait()
		found, errQuery := j.Query(t.Context(), Query{Call: r.Call})
		if errQuery != nil {
			t.Fatal(errQuery)
		}
		if err != nil && !errors.Is(err, gone) || (err == nil) != (len(found) == 1) {
			t.Fatalf("Start = %v, and %d rows are there", err, len(found))
		}
	}
}

func TestClockSetBack(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	dir := t.TempDir()
	opts := Options{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}}
	j, closeAll := openIn(t, dir, opts)
	set := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
	for i, d := range []time.Duration{0, time.Second, -time.Hour, 0, time.Second} {
		set(d)
		end1(t, j, readEnd(i))
	}
	closeAll()
	set(-time.Minute) // while no host runs
	j, _ = openIn(t, dir, opts)
	end1(t, j, readEnd(5))
	mu.Lock()
	now = time.Date(31_000, 1, 1, 0, 0, 0, 0, time.UTC) // which no row can hold
	mu.Unlock()
	end1(t, j, readEnd(6))
	var back []bool
	for i, r := range all(t, j) {
		back = append(back, r.ClockBack)
		if r.Call != readEnd(i).Call {
			t.Errorf("row %d is of call %s: the clock decided the order", i+1, r.Call)
		}
	}
	if diff := cmp.Diff([]bool{false, false, true, false, false, true, true}, back); diff != "" {
		t.Errorf("clock_back of the rows (-want +got):\n%s", diff)
	}
	wantVerified(t, j, 7)
}

func TestUnfinished(t *testing.T) {
	dir := t.TempDir()
	j, closeAll := openIn(t, dir, Options{})
	call := func(id string) Record { r := full(); r.Call = id; return r }
	for _, id := range []string{"a", "b", "c", "d"} {
		start1(t, j, call(id))
	}
	end1(t, j, call("a"))
	end1(t, j, call("c"))
	end1(t, j, call("read-only"))
	calls := func(want ...string) {
		t.Helper()
		rows, err := j.Unfinished(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, r.Call)
			if r.Kind != Start || r.Tool != "write_file" {
				t.Errorf("unfinished row %+v is not the start", r)
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("unfinished calls (-want +got):\n%s", diff)
		}
	}
	calls() // those of this host are not left by another
	closeAll()
	j, closeAll = openIn(t, dir, Options{})
	calls("b", "d")
	start1(t, j, call("e"))
	end1(t, j, call("b"))
	calls("d")
	closeAll()
	j, _ = openIn(t, dir, Options{})
	calls("d", "e")
	end1(t, j, call("d"))
	end1(t, j, call("e"))
	calls()
	wantVerified(t, j, 11)
	if j.head.OpenFrom != 0 {
		t.Errorf("OpenFrom = %d after all calls have ended", j.head.OpenFrom)
	}
}

func TestQuery(t *testing.T) {
	j, _ := openIn(t, t.TempDir(), Options{})
	for i := range 20 {
		r := readEnd(i)
		r.User = []string{"ann", "bob"}[i%2]
		r.Tool = []string{"read_file", "find", `odd "name" ü`}[i%3]
		// Arguments that look like other columns do not mislead.
		r.Arguments = json.RawMessage(`{"user":"eve","text":"\"user\":\"eve\""}`)
		r.Session, r.Plugin, r.Status = "s"+fmt.Sprint(i%5), "p"+fmt.Sprint(i%4), []string{"success", "error"}[i/10]
		end1(t, j, r)
	}
	rows := all(t, j)
	for _, tt := range []struct {
		name string
		q    Query
		want []int64
	}{
		{"newest first", Query{Limit: 3}, []int64{20, 19, 18}},
		{"oldest first", Query{Limit: 3, OldestFirst: true}, []int64{1, 2, 3}},
		{"before", Query{Before: 5, Limit: 2}, []int64{4, 3}},
		{"after", Query{After: 18}, []int64{20, 19}},
		{"between", Query{After: 3, Before: 6, OldestFirst: true}, []int64{4, 5}},
		{"user and tool", Query{User: "ann", Tool: "find", OldestFirst: true}, []int64{5, 11, 17}},
		{"a tool that JSON escapes", Query{Tool: `odd "name" ü`, Limit: 2}, []int64{18, 15}},
		{"nobody", Query{User: "eve"}, nil},
		{"session", Query{Session: "s4", OldestFirst: true}, []int64{5, 10, 15, 20}},
		{"plugin and status", Query{Plugin: "p3", Status: "error"}, []int64{20, 16, 12}},
		{"call", Query{Call: readEnd(7).Call}, []int64{8}},
		{"no such call", Query{Call: "tc_x"}, nil},
		{"until", Query{Until: rows[0].Time}, nil},
		{"since", Query{Since: rows[19].Time.Add(time.Millisecond)}, nil},
		{"a limit beyond the most", Query{Limit: 1 << 30, Since: rows[0].Time, Until: rows[19].Time.Add(time.Millisecond), After: 17}, []int64{20, 19, 18}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := j.Query(t.Context(), tt.q)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, r := range found {
				got = append(got, r.Seq)
				if diff := cmp.Diff(rows[r.Seq-1], r); diff != "" {
					t.Errorf("row %d (-want +got):\n%s", r.Seq, diff)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFollow(t *testing.T) {
	j, closeAll := openIn(t, t.TempDir(), Options{})
	const n = 1000
	for i := range n / 2 {
		if err := j.End(t.Context(), readEnd(i), i == n/2-1); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for _, after := range []int64{0, 300} {
		wg.Go(func() {
			want := after + 1
			for r, err := range j.Follow(noDeadline(), after) {
				if err != nil || r.Seq != want {
					t.Errorf("Follow gave row %d, %v, want %d", r.Seq, err, want)
					return
				}
				want++
			}
			if want != n+1 { // Close ends it, after the last row
				t.Errorf("Follow ended before row %d, want all of %d", want, n)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		for r, err := range j.Follow(ctx, n/2) {
			if err != nil || r.Seq != n/2+1 {
				t.Errorf("Follow gave row %d, %v", r.Seq, err)
			}
			cancel() // which ends it
		}
	})
	for r := range j.Follow(t.Context(), 0) {
		if r.Seq == 3 {
			break
		}
	}
	for i := range n / 2 {
		if err := j.End(t.Context(), readEnd(n/2+i), false); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-ctx.Done()
		}
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait() // before the store is closed
	closeAll()
}

func TestKindsOfBodies(t *testing.T) {
	for _, kind := range []Kind{Start, End, Notice} {
		r := full()
		r.Kind = kind
		if got := bodyKind(string(encode(r, nil))); got != kind {
			t.Errorf("bodyKind of a %s = %s", kind, got)
		}
	}
	if got := bodyKind("{}"); got != "" {
		t.Errorf("bodyKind of nothing = %q", got)
	}
	if _, err := bodyTime("{}"); err == nil {
		t.Error("bodyTime of nothing: no error")
	}
}
