package auth

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDescendsSeesReusedNumbers checks a child whose parent ends during the check, when
// another process has the parent's number: here init, which descends from no other process.
// The control trusts the numbers and does not look again.
func TestDescendsSeesReusedNumbers(t *testing.T) {
	child, open := orphanedMeanwhile(t)
	got, err := descends(child, os.Getpid(), open)
	if err != nil || !got {
		t.Errorf("descends = %v, %v; want true", got, err)
	}

	child, open = orphanedMeanwhile(t)
	got = false
	for pid := child; pid > 1 && !got; {
		p, err := open(pid)
		if err != nil {
			t.Fatal(err)
		}
		if pid, err = p.parent(); err != nil {
			t.Fatal(err)
		}
		got = pid == os.Getpid()
		_ = p.Close() // opened for reading only
	}
	if got {
		t.Error("without the second look the descendant is seen too, so the test shows nothing")
	}
}

// orphanedMeanwhile returns a grandchild of this process and a function that opens processes
// by number. When that function is to open the grandchild's parent, the parent has ended and
// init has its number.
func orphanedMeanwhile(t *testing.T) (child int, open func(pid int) (process, error)) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	parent := exec.Command("sh", "-c", "sleep 1000 >&- & echo $!; wait")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(child, syscall.SIGKILL)
		_, _ = syscall.Wait4(child, nil, 0, nil)
	})
	return child, func(pid int) (process, error) {
		if pid != parent.Process.Pid {
			return openProcess(pid)
		}
		_ = parent.Process.Kill()
		_ = parent.Wait() // its child is now an orphan, and its number is free
		return openProcess(1)
	}
}

func TestParentIn(t *testing.T) {
	for _, tt := range []struct {
		stat string
		want int
		ok   bool
	}{
		{"7 (sh) S 3 7 7 0", 3, true},
		{"7 (a) S 1 (b) R 5 7", 5, true}, // the name is "a) S 1 (b"
		{"7 (x", 0, false},
		{"7 (x) S", 0, false},
		{"7 (x) S y", 0, false},
		{"", 0, false},
	} {
		if got, err := parentIn([]byte(tt.stat)); got != tt.want || (err == nil) != tt.ok {
			t.Errorf("parentIn(%q) = %d, %v; want %d, ok %v", tt.stat, got, err, tt.want, tt.ok)
		}
	}
}
