//go:build !race

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/internal/soak"
)

// These start processes, or are of one goroutine: the race detector only makes them slow.

// TestKill9 kills a host under load repeatedly: each acknowledged row exists, the chain
// verifies, and Unfinished is exact. In every second directory, old rows are removed meanwhile.
func TestKill9(t *testing.T) {
	const perDir = 10
	killed := soak.Rounds(20, 100)
	rnd := rand.New(rand.NewPCG(7, 8))
	var dir string
	var env []string
	var unfinished, removed int
	for round := range killed {
		if round%perDir == 0 {
			dir, env = filepath.Join(t.TempDir(), "state"), nil
			if round/perDir%2 == 1 {
				env = []string{small + "=1"}
			}
		}
		acknowledged := crash(t, dir, 1+rnd.IntN(150), env...)
		lock, err := store.Lock(dir)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		j, closeAll := openIn(t, dir, Options{})
		report, err := j.Verify(t.Context())
		if err != nil || len(report.Problems) > 0 {
			t.Fatalf("round %d: Verify = %+v, %v", round, report, err)
		}
		there := map[string]bool{}
		var open []string
		for _, r := range all(t, j) {
			there[string(r.Kind)+" "+r.Call] = true
		}
		for _, r := range all(t, j) {
			if r.Kind == Start && !there["end "+r.Call] {
				open = append(open, r.Call)
			}
		}
		for _, line := range acknowledged {
			if !there[line] && env == nil {
				t.Errorf("round %d: %s was acknowledged and is not there", round, line)
			}
		}
		if report.First > 1 {
			removed++
		}
		rows, err := j.Unfinished(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, r.Call)
			end1(t, j, Record{Call: r.Call, Tool: r.Tool, Status: "error", Code: "unknown_outcome"})
		}
		if diff := cmp.Diff(open, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("round %d: unfinished calls (-want +got):\n%s", round, diff)
		}
		unfinished += len(got)
		closeAll()
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	}
	if unfinished < killed || removed < killed/4 {
		t.Errorf("in %d rounds %d calls were unfinished, and in %d old rows were removed: too little to show anything", killed, unfinished, removed)
	}
}

// TestKill9Control acknowledges rows that are not durable: then kill -9 loses
// them, and the look after it must see that.
func TestKill9Control(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	acknowledged := crash(t, dir, 50, lagOnly+"=1")
	j, _ := openIn(t, dir, Options{})
	if got := len(all(t, j)); got >= len(acknowledged) {
		t.Errorf("%d rows of %d that were acknowledged too early are there", got, len(acknowledged))
	}
}

// TestFullDisk fills the disk under a journal: see fill.
func TestFullDisk(t *testing.T) {
	t.Run("files may not grow", func(t *testing.T) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), limitDir+"="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("no space on the device", func(t *testing.T) {
		dir := t.TempDir()
		mountSmall(t, dir, "24m")
		ballast := filepath.Join(dir, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 22<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := fill(dir, func() error { return os.Remove(ballast) }); err != nil {
			t.Error(err)
		}
	})
}

// TestCrashPoints kills a host before each commit and before each write, sync and rename of the
// key and the head file: the journal opens and verifies, and the head file names no row older
// than an acknowledged one.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	var seen []string
	for kill := 1; ; kill++ {
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), stepDir+"="+dir, stepKill+"="+strconv.Itoa(kill))
		out, err := cmd.Output()
		exit, failed := errors.AsType[*exec.ExitError](err)
		if err != nil && (!failed || exit.Exited()) {
			t.Fatalf("step %d: %v\n%s", kill, err, out)
		}
		var row int64
		what := "the end"
		for line := range strings.Lines(string(out)) {
			if text, ok := strings.CutPrefix(line, "killed before: "); ok {
				what = strings.TrimSpace(text)
			}
			_, _ = fmt.Sscanf(line, "row: %d", &row)
		}
		// The file as the crash left it: opening may mend it.
		if key, err := readKey(keyPath(dir)); err == nil {
			last, err := readHeadFile(headIn(dir), newChain(key))
			lost := errors.Is(err, errNoHeadFile) && strings.Contains(string(out), "removed")
			if !lost && (err != nil || last.Seq < row) {
				t.Errorf("killed at step %d, before %q: the head file says %v, %v; row %d was acknowledged", kill, what, last, err, row)
			}
			if lost { // below the host, which was killed before it wrote the file again
				seen = append(seen, what)
				continue
			}
		}
		j, closeAll := openIn(t, dir, Options{})
		report, err := j.Verify(t.Context())
		if err != nil || len(report.Problems) > 0 || report.Last < row {
			t.Errorf("killed at step %d, before %q: Verify = %+v, %v", kill, what, report, err)
		}
		end1(t, j, readEnd(1))
		closeAll()
		if err == nil && !failed {
			break
		}
		seen = append(seen, what)
	}
	slices.Sort(seen)
	seen = slices.Compact(seen)
	want := []string{
		"commit rows", "commit the head", "head file: make", "head file: rename", "head file: sync", "head file: sync its name",
		"head file: write", "keep the key", "make the key", "remove rows", "tell the callers",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("steps %q, want %q", seen, want)
	}
}

// TestQueryIsBounded has rows so large that few are returned at once.
func TestQueryIsBounded(t *testing.T) {
	j, _ := openIn(t, t.TempDir(), Options{})
	r := full()
	r.Arguments = quoted(strings.Repeat("x", int(MaxArguments)-2))
	for range 300 {
		if err := j.End(t.Context(), r, false); err != nil {
			t.Fatal(err)
		}
	}
	end1(t, j, r)
	page, err := j.Query(t.Context(), Query{Limit: maxLimit})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(page); n == 0 || n > maxQueryBytes/int(MaxArguments)+1 {
		t.Errorf("%d rows of 64 KiB at once", n)
	}
	if got := len(all(t, j)); got != 301 {
		t.Errorf("page by page %d rows, want 301", got)
	}
}

// TestFlippedBytesOfTheFile flips bytes anywhere in the file: it is refused,
// or Verify finds it, or the byte means nothing and all rows are as they were.
func TestFlippedBytesOfTheFile(t *testing.T) {
	dir := written(t)
	j, closeAll := openIn(t, dir, Options{})
	want := all(t, j)
	closeAll()
	whole, err := os.ReadFile(databasePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(soak.Seed(t), 6))
	rounds := soak.Rounds(100, 300)
	var refused, found, harmless int
	for range rounds {
		data := bytes.Clone(whole)
		at := rnd.IntN(len(data))
		data[at] ^= 1 << rnd.IntN(8)
		if err := os.WriteFile(databasePath(dir), data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), store.Options{Dir: dir})
		if err != nil {
			refused++
			continue
		}
		opts := Options{Store: s, KeyPath: keyPath(dir)}
		switch report, err := Verify(t.Context(), opts); {
		case err != nil || len(report.Problems) > 0:
			found++
		default:
			j, err := Open(t.Context(), opts)
			if err != nil {
				t.Fatalf("byte %d: Open = %v, but Verify finds nothing", at, err)
			}
			if diff := cmp.Diff(want, all(t, j)); diff != "" {
				t.Errorf("byte %d: Verify finds nothing (-want +got):\n%s", at, diff)
			}
			harmless++
			if err := j.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("of %d flipped bits %d were refused, %d found, %d meant nothing", rounds, refused, found, harmless)
	if found == 0 {
		t.Error("no flipped bit was found")
	}
}
