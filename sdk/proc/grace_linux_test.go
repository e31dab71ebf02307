package proc_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/proc"
)

// TestGrace checks that during its grace period, a command can end by itself, even if it was
// stopped.
func TestGrace(t *testing.T) {
	for _, grace := range []time.Duration{0, patience} {
		ctx := newExpiring(t)
		c := command("leaf")
		c.Grace = grace
		out := tap(t, &c)
		p, err := proc.Start(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		readPID(t, out)
		if err := p.Signal(unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		close(ctx.done)
		want := unix.SIGTERM
		if grace == 0 {
			want = unix.SIGKILL
		}
		if got, err := p.Wait(); err != nil || got.Signal != want || !got.TimedOut {
			t.Errorf("Wait() = %+v, %v, want signal %v", got, err, want)
		}
	}
}

// TestGraceAtTheStart checks that the grace period applies from the command's first moment,
// before its start is noticed.
func TestGraceAtTheStart(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the goroutine that would notice the start waits for the loop below
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := filepath.Join(t.TempDir(), "begun")
	c := proc.Command{Path: "/bin/sh", Args: []string{"-c", "trap 'exit 3' TERM; : > " + begun + "; while :; do :; done"}, Grace: patience}
	var got proc.Result
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		got, err = proc.Run(ctx, c)
	}()
	for there := false; !there; {
		select {
		case <-ended:
			t.Fatalf("Run() = %+v, %v, before it is canceled", got, err)
		default:
			_, missing := os.Stat(begun)
			there = missing == nil
		}
	}
	cancel()
	<-ended
	if err != nil || got.ExitCode != 3 || !got.Canceled {
		t.Errorf("Run() = %+v, %v, want exit code 3 after SIGTERM", got, err)
	}
}

// TestGraceOfTheRest checks that remaining processes can end by themselves, too; the others
// are killed after the grace period.
func TestGraceOfTheRest(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		grace  time.Duration
		want   string
		strays int
	}{
		{[]string{"polite"}, patience, "bye\n", 0},
		// The command needs some of the time to end, the rest all of it.
		{[]string{"polite", "rude"}, 3 * time.Second, "", 1},
	} {
		ctx := newExpiring(t)
		c := command(tt.args...)
		c.Grace = tt.grace
		out := tap(t, &c)
		p, err := proc.Start(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		readPID(t, out)
		close(ctx.done)
		got, err := p.Wait()
		_, said, _ := strings.Cut(got.Stdout.String(), "\n")
		if err != nil || got.Signal != unix.SIGTERM || !got.TimedOut || got.Strays != tt.strays || said != tt.want {
			t.Errorf("%q: Wait() = %+v, %v, it says %q", tt.args, got, err, said)
		}
	}
}
