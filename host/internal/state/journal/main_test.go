package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/state/store"
)

// Each names a directory and makes this binary another program: see the tests.
const (
	crashDir = "TOOLHOST_JOURNAL_TEST_CRASH"
	limitDir = "TOOLHOST_JOURNAL_TEST_LIMIT"
	stepDir  = "TOOLHOST_JOURNAL_TEST_STEP"
)

func TestMain(m *testing.M) {
	for name, program := range map[string]func(dir string) error{crashDir: writeUntilKilled, limitDir: fillLimited, stepDir: writeToStep} {
		if dir := os.Getenv(name); dir != "" {
			if err := program(dir); err != nil {
				fmt.Fprintln(os.Stdout, err)
				os.Exit(1)
			}
			return
		}
	}
	goleak.VerifyTestMain(m)
}

// openIn opens the journal in dir; close ends it and its store.
func openIn(tb testing.TB, dir string, opts Options) (j *Journal, closeAll func()) {
	tb.Helper()
	s, err := store.Open(tb.Context(), store.Options{Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	opts.Store, opts.KeyPath = s, keyPath(dir)
	if j, err = Open(tb.Context(), opts); err != nil {
		s.Close()
		tb.Fatal(err)
	}
	closed := false
	closeAll = func() {
		if closed {
			return
		}
		closed = true
		if err := j.Close(noDeadline()); err != nil {
			tb.Error(err)
		}
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	}
	tb.Cleanup(closeAll)
	return j, closeAll
}

func keyPath(dir string) string { return filepath.Join(dir, "keys", "journal.key") }
