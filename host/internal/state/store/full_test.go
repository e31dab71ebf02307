package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// limitDir in the environment makes this binary a process whose files may not
// grow, and which fills a store in that directory.
const limitDir = "TOOLHOST_STORE_TEST_LIMIT"

// TestFullDisk fills the disk: Do reports it, no acknowledged write is lost, reads continue, and
// writing resumes by itself when there is space again.
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
		mountSmall(t, dir, "2m")
		ballast := filepath.Join(dir, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := fill(dir, func() error { return os.Remove(ballast) }); err != nil {
			t.Error(err)
		}
	})
}

// limited is the process whose files may not grow; it returns its exit code.
func limited(dir string) int {
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 30}
	err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
	if err == nil {
		err = fill(dir, func() error {
			limit.Cur = 1 << 30
			return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return 1
	}
	return 0
}

// fill writes to a store in dir until the disk is full, makes space, and waits until writing
// works again.
func fill(dir string, makeSpace func() error) error {
	ctx := context.Background()
	s, err := Open(ctx, Options{Dir: dir})
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.Do(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT) STRICT")
		return err
	})
	if err != nil {
		return err
	}
	text := strings.Repeat("x", 10_000)
	kept := 0
	for ; err == nil; kept++ {
		if kept == 10_000 {
			return errors.New("10,000 notes fit")
		}
		err = s.Do(ctx, add(kept, text))
	}
	kept--
	if kept < 10 || !errors.Is(err, ErrUnwritable) {
		return fmt.Errorf("after %d notes Do = %w, want ErrUnwritable", kept, err)
	}
	if s.Healthy() == nil {
		return errors.New("Healthy = nil on a full disk")
	}
	count := func() (n int, err error) {
		err = s.Read().QueryRow("SELECT count(*) FROM note WHERE length(text) = 10000").Scan(&n)
		return n, err
	}
	if n, err := count(); err != nil || n != kept {
		return fmt.Errorf("%d notes can be read on a full disk, %w; want %d", n, err, kept)
	}
	if err := makeSpace(); err != nil {
		return err
	}
	patience, look := time.NewTimer(time.Minute), time.NewTicker(10*time.Millisecond)
	defer patience.Stop()
	defer look.Stop()
	for s.Healthy() != nil {
		select {
		case <-look.C:
		case <-patience.C:
			return fmt.Errorf("a minute after there is space: %w", s.Healthy())
		}
	}
	if err := s.Do(ctx, add(kept, text)); err != nil {
		return fmt.Errorf("with space again: %w", err)
	}
	if n, err := count(); err != nil || n != kept+1 {
		return fmt.Errorf("%d notes, %w; want %d", n, err, kept+1)
	}
	return nil
}
