package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/state/store"
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

// crash runs a writer in dir, kills it after some rows, and returns the acknowledged rows.
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
