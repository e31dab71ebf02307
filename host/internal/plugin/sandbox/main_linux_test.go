package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary is also the program that the tests start: its first argument then selects the
// action.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if act, ok := programs()[os.Args[1]]; ok {
			if err := act(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for an immediate event.
const patience = 30 * time.Second

func newLauncher(tb testing.TB) *Launcher {
	tb.Helper()
	l, err := NewLauncher()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}

func open(tb testing.TB, path string) *os.File {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return f
}

// profile makes the test binary act as one of programs.
func profile(tb testing.TB, args ...string) Profile {
	tb.Helper()
	return Profile{
		Binary: open(tb, "/proc/self/exe"),
		Path:   "/opt/plugins/test",
		Args:   args,
		Env:    []string{"GORACE=atexit_sleep_ms=0"}, // a race detector would have it end a second late
		// The programs try what the sandbox must prevent.
		Confinement: off,
	}
}

func started(tb testing.TB, l *Launcher, p Profile) *Process {
	tb.Helper()
	proc, err := l.Launch(tb.Context(), p)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		proc.Kill()
		<-proc.Done()
		proc.closeStdio()
	})
	return proc
}

// readAll returns all that the program writes to its standard output.
func readAll(t *testing.T, p *Process) string {
	t.Helper()
	out, err := io.ReadAll(p.Stdout)
	if err != nil {
		t.Fatalf("read stdout: %v", err)
	}
	return string(out)
}

// readPID reads one line that holds a process id.
func readPID(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("read a process id: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

var off = Confinement{Isolation: Off}
