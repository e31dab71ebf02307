package journal

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// writeRows writes n rows that may lag, and then a durable one.
func writeRows(t *testing.T, j *Journal, n int) {
	t.Helper()
	for i := range n {
		if err := j.End(t.Context(), readEnd(i), false); err != nil {
			t.Fatal(err)
		}
	}
	end1(t, j, readEnd(n))
}

// settle waits until retention has nothing to do.
func settle(t *testing.T) {
	t.Helper()
	<-time.After(2 * retainEvery)
	synctest.Wait()
}

func TestRetentionBySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		const size = 200 * tool.KiB
		j, closeAll := openIn(t, dir, Options{MaxSize: size})
		writeRows(t, j, 3000)
		settle(t)
		rows := all(t, j)
		first, last := rows[0].Seq, rows[len(rows)-1].Seq
		if last != 3001 || first == 1 || len(rows) < 100 || j.head.Bytes > int64(size) {
			t.Errorf("rows %d-%d of %d bytes are kept, want the last ones of at most %v", first, last, j.head.Bytes, size)
		}
		wantVerified(t, j, last-first+1)
		closeAll()
		j, _ = openIn(t, dir, Options{})
		wantVerified(t, j, last-first+1)
		writeRows(t, j, 10)
		wantVerified(t, j, last-first+12)
		tamper(t, dir, "DELETE FROM journal WHERE seq = (SELECT min(seq) FROM journal)")
		report, err := j.Verify(t.Context())
		if err != nil || len(report.Problems) != 1 || report.Problems[0].From != first {
			t.Errorf("control: retention by somebody else gives %+v, %v, want row %d missing", report, err, first)
		}
	})
}

func TestRetentionByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, closeAll := openIn(t, t.TempDir(), Options{Keep: time.Hour})
		writeRows(t, j, 1500)
		<-time.After(30 * time.Minute)
		synctest.Wait()
		wantVerified(t, j, 1501)
		writeRows(t, j, 9)
		<-time.After(31 * time.Minute)
		settle(t)
		if rows := all(t, j); rows[0].Seq != 1502 {
			t.Errorf("the oldest row is %d, want 1502, the first that is younger than an hour", rows[0].Seq)
		}
		wantVerified(t, j, 10)
		<-time.After(24 * time.Hour)
		settle(t)
		wantVerified(t, j, 1) // the last row always stays
		closeAll()
	})
}

// TestRetentionKeepsOpenStarts has a call that never ends.
func TestRetentionKeepsOpenStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		opts := Options{MaxSize: 20 * tool.KiB, Keep: time.Minute}
		j, closeAll := openIn(t, dir, opts)
		writeRows(t, j, 9)
		start1(t, j, full())
		writeRows(t, j, 500)
		settle(t)
		if rows := all(t, j); rows[0].Seq != 11 || rows[0].Kind != Start {
			t.Errorf("the oldest row is %d, want 11, the start without an end", rows[0].Seq)
		}
		closeAll()
		j, closeAll = openIn(t, dir, opts)
		left, err := j.Unfinished(t.Context())
		if err != nil || len(left) != 1 {
			t.Fatalf("Unfinished = %v, %v, want the one call", left, err)
		}
		end1(t, j, full())
		settle(t)
		wantVerified(t, j, 1)
		closeAll()
	})
}

// TestRetentionKeepsTraces changes or removes a row that retention would remove next: retention
// leaves it, as evidence.
func TestRetentionKeepsTraces(t *testing.T) {
	for _, statement := range []string{
		"UPDATE journal SET call = 'tc_x' WHERE seq = 5",
		"UPDATE journal SET mac = zeroblob(32) WHERE seq = 5",
		"DELETE FROM journal WHERE seq = 5",
	} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			j, closeAll := openIn(t, dir, Options{Keep: time.Hour})
			writeRows(t, j, 9)
			tamper(t, dir, statement)
			<-time.After(2 * time.Hour)
			settle(t)
			if rows := all(t, j); rows[0].Seq > 5 {
				t.Errorf("after %q the oldest row is %d: the trace is gone", statement, rows[0].Seq)
			}
			report, err := j.Verify(t.Context())
			if err != nil || len(report.Problems) != 1 || report.Problems[0].From != 5 {
				t.Errorf("Verify after %q = %+v, %v, want row 5", statement, report, err)
			}
			end1(t, j, readEnd(10)) // calls continue
			closeAll()
		})
	}
}

// TestRetentionGoesOnWhileRowsCome removes rows under load; the journal stays
// whole and about as large as it may be.
func TestRetentionGoesOnWhileRowsCome(t *testing.T) {
	j, _ := openIn(t, t.TempDir(), Options{MaxSize: 100 * tool.KiB, MaxLag: time.Millisecond})
	var largest atomic.Int64
	for range 20 {
		writeRows(t, j, 300)
		j.mu.Lock()
		largest.Store(max(largest.Load(), j.head.Bytes))
		j.mu.Unlock()
	}
	if got := tool.ByteSize(largest.Load()); got > tool.MiB {
		t.Errorf("the journal grew to %d bytes, want about 100 KiB", got)
	}
	report, err := j.Verify(t.Context()) // while rows go
	if err != nil || len(report.Problems) > 0 || report.Last != 20*301 || report.Rows > 5000 {
		t.Errorf("Verify = %+v, %v", report, err)
	}
}
