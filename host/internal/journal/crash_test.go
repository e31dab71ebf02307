package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolhost/toolhost/host/internal/store"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// lagOnly in the environment makes the writer acknowledge rows that may
	// lag: the control, in which the loss happens.
	lagOnly = "TOOLHOST_JOURNAL_TEST_LAG"
	// small in the environment makes the writer remove old rows.
	small = "TOOLHOST_JOURNAL_TEST_SMALL"
)

// writeUntilKilled is a host under load: callers that start and end calls. It
// prints each row that it may rely on, once it may.
func writeUntilKilled(dir string) error {
	ctx := context.Background()
	lock, err := store.Lock(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return err
	}
	opts := Options{Store: s, KeyPath: keyPath(dir), MaxLag: 5 * time.Millisecond}
	if os.Getenv(lagOnly) != "" {
		opts.MaxLag = time.Hour
	}
	if os.Getenv(small) != "" {
		opts.MaxSize = 64 * tool.KiB
	}
	j, err := Open(ctx, opts)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for caller := range 8 {
		go func() { // ends with the process
			for i := 0; ; i++ {
				r := full()
				r.Call = fmt.Sprintf("tc_%d_%d_%d", os.Getpid(), caller, i)
				if err := oneCall(ctx, j, r, i%4); err != nil {
					failed <- err
				}
				if os.Getenv(lagOnly) != "" && i == 20 {
					return // more rows would be written without waiting
				}
			}
		}()
	}
	return <-failed
}

// oneCall journals one call of one of four kinds.
func oneCall(ctx context.Context, j *Journal, r Record, kind int) error {
	if os.Getenv(lagOnly) != "" {
		kind = 3
	}
	acknowledge := func(kind Kind) { fmt.Fprintln(os.Stdout, kind, r.Call) } // one write each
	if kind < 3 {
		if err := j.Start(ctx, r); err != nil {
			return err
		}
		acknowledge(Start)
	}
	switch kind {
	case 0:
		if err := j.End(ctx, r, true); err != nil {
			return err
		}
		acknowledge(End)
	case 1, 3:
		if err := j.End(ctx, r, false); err != nil {
			return err
		}
		if os.Getenv(lagOnly) != "" {
			acknowledge(End)
		}
	case 2: // never ends
	}
	return nil
}

// crash runs a writer in dir, kills it after some rows, and returns what it
// acknowledged.
func crash(t *testing.T, dir string, after int, env ...string) (acknowledged []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), crashDir+"="+dir), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		acknowledged = append(acknowledged, lines.Text())
		if len(acknowledged) == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() {
		t.Fatalf("the writer ended by itself: %v, %s", err, acknowledged)
	}
	return acknowledged
}

// TestKill9 kills a host under load again and again: each row that it
// acknowledged is there, the chain verifies, and Unfinished is exact. In every
// second directory old rows are removed meanwhile.
func TestKill9(t *testing.T) {
	const perDir = 10
	killed := soak.Rounds(40, 100)
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
