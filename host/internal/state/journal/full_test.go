package journal

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/state/store"
)

// fillLimited is fill in a process whose files may not grow.
func fillLimited(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 30}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	return fill(dir, func() error {
		limit.Cur = 1 << 30
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
	})
}

// fill journals calls in dir until the disk is full. Then Start fails, the ends of read_only
// calls cost nothing, and reads continue. With free space, writing resumes by itself: no
// acknowledged row is lost, the ends of calls that ran exist, and a notice names the missing
// rows.
func fill(dir string, makeSpace func() error) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer s.Close()
	j, err := Open(ctx, Options{Store: s, KeyPath: keyPath(dir)})
	if err != nil {
		return err
	}
	defer func() { _ = j.Close(ctx) }() // closed below, unless something failed
	call := func(i int) Record {
		r := full()
		r.Call, r.Error = fmt.Sprint("tc_", i), strings.Repeat("x", 4000)
		return r
	}
	kept := 0
	for ; err == nil; kept++ {
		if kept == 10_000 {
			return errors.New("10,000 rows fit")
		}
		err = j.Start(ctx, call(kept))
	}
	kept--
	if kept < 10 || !errors.Is(err, store.ErrUnwritable) || j.Healthy() == nil {
		return fmt.Errorf("after %d rows Start = %w, want store.ErrUnwritable; Healthy = %w", kept, err, j.Healthy())
	}
	if err := j.End(ctx, call(0), true); !errors.Is(err, store.ErrUnwritable) {
		return fmt.Errorf("a durable End on a full disk = %w", err)
	}
	if err := j.Connection(ctx, Record{Call: "tc_1", About: "example.com:443"}); err != nil {
		return fmt.Errorf("a connection on a full disk: %w", err)
	}
	if err := j.Start(ctx, call(kept+1)); !errors.Is(err, store.ErrUnwritable) { // tries to write both
		return fmt.Errorf("Start on a full disk = %w", err)
	}
	const reads = maxQueued + 500
	for i := range reads {
		if err := j.End(ctx, readEnd(i), false); err != nil {
			return fmt.Errorf("the end of a read_only call on a full disk: %w", err)
		}
	}
	if err := j.End(ctx, call(1), false); err != nil {
		return err
	}
	if err := j.Start(ctx, call(kept+1)); !errors.Is(err, store.ErrUnwritable) {
		return fmt.Errorf("Start on a full disk, many rows waiting = %w", err)
	}
	if rows, err := j.Query(ctx, Query{Limit: 5}); err != nil || len(rows) != 5 {
		return fmt.Errorf("%d rows can be read on a full disk, %w", len(rows), err)
	}
	if err := makeSpace(); err != nil {
		return err
	}
	patience, look := time.NewTimer(time.Minute), time.NewTicker(10*time.Millisecond)
	defer patience.Stop()
	defer look.Stop()
	for j.Healthy() != nil {
		select {
		case <-look.C:
		case <-patience.C:
			return fmt.Errorf("a minute after there is space: %w", j.Healthy())
		}
	}
	if err := j.Start(ctx, call(kept+2)); err != nil {
		return fmt.Errorf("with space again: %w", err)
	}
	return checkFilled(ctx, j, kept, reads)
}

// checkFilled checks the result of fill.
func checkFilled(ctx context.Context, j *Journal, kept, reads int) error {
	starts, ends, notices, connections := map[string]bool{}, map[string]bool{}, 0, 0
	var dropped int
	for after := int64(0); ; {
		page, err := j.Query(ctx, Query{After: after, Limit: maxLimit, OldestFirst: true})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			switch r.Kind {
			case Start:
				starts[r.Call] = true
			case End:
				ends[r.Call] = true
			case Change:
			case Connection:
				connections++
			case Notice:
				notices++
				if _, err := fmt.Sscanf(r.Notice, "the ends of %d read_only calls", &dropped); err != nil {
					return fmt.Errorf("notice %q: %w", r.Notice, err)
				}
			}
			after = r.Seq
		}
	}
	for i := range kept {
		if !starts[fmt.Sprint("tc_", i)] {
			return fmt.Errorf("start %d was acknowledged and is not there", i)
		}
	}
	if len(starts) != kept+1 {
		return fmt.Errorf("%d starts are there, want %d: a refused one is among them", len(starts), kept+1)
	}
	if connections != 1 {
		return fmt.Errorf("%d connections are there, want 1", connections)
	}
	if !ends["tc_0"] || !ends["tc_1"] {
		return errors.New("the ends of calls that ran are not there")
	}
	if dropped == 0 || notices != 1 || len(ends)-2+dropped != reads {
		return fmt.Errorf("%d ends are there and %d notices say that %d are not, of %d", len(ends)-2, notices, dropped, reads)
	}
	report, err := j.Verify(ctx)
	if err != nil || len(report.Problems) > 0 {
		return fmt.Errorf("Verify = %+v, %w", report, err)
	}
	return j.Close(ctx)
}

// TestHealthyWithoutTraffic: a journal that could not write a start, which was dropped, must
// recover without another attempt.
func TestHealthyWithoutTraffic(t *testing.T) {
	j, _ := openIn(t, t.TempDir(), Options{})
	j.failed(nil, fmt.Errorf("%w: for a moment", store.ErrUnwritable))
	if err := j.Healthy(); err != nil {
		t.Errorf("Healthy = %v, but the store can write", err)
	}
	j.failed(nil, errForeign)
	if err := j.Healthy(); !errors.Is(err, errForeign) {
		t.Errorf("Healthy = %v, want that somebody else writes", err)
	}
	start1(t, j, full())
	if err := j.Healthy(); err != nil {
		t.Errorf("Healthy after a row was written = %v", err)
	}
}
