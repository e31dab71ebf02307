package proctree

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// The first thread is where the kernel puts orphans.
func TestOwnThreadIsNotTheFirst(t *testing.T) {
	const threads = 64 // more than exist, so that the first is among them
	var running, ended sync.WaitGroup
	release := make(chan struct{})
	running.Add(threads)
	for range threads {
		ended.Go(func() {
			OnOwnThread(func() {
				if isFirstThread() {
					t.Error("f runs on the first thread")
				}
				running.Done()
				<-release
			})
		})
	}
	running.Wait()
	close(release)
	ended.Wait()
}

func TestReadStat(t *testing.T) {
	stat, err := ReadStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if session, err := unix.Getsid(0); err != nil || stat.Parent != os.Getppid() || stat.Session != session || stat.Started == 0 {
		t.Errorf("ReadStat() = %+v, want the parent %d, the session %d", stat, os.Getppid(), session)
	}
	if got := StartTime(1 << 30); got != 0 {
		t.Errorf("StartTime() of no process = %d, want 0", got)
	}
}

// The memory of a process includes that of its children.
func TestResident(t *testing.T) {
	alone, ok := Resident(os.Getpid())
	if !ok || alone < 1<<20 {
		t.Fatalf("Resident() = %d, %v, want more than 1 MiB", alone, ok)
	}
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), bigChild+"=1")
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil { // it has its memory
		t.Fatal(err)
	}
	if both, ok := Resident(os.Getpid()); !ok || both < alone+bigSize/2 {
		t.Errorf("Resident() with a child of %d bytes = %d, %v; without it %d", bigSize, both, ok, alone)
	}
	if err := errors.Join(input.Close(), child.Wait()); err != nil {
		t.Fatal(err)
	}
	if size, ok := Resident(child.Process.Pid); ok {
		t.Errorf("Resident() of a process that has ended = %d", size)
	}
}

// bigChild makes the test binary a process with [bigSize] bytes of memory, which ends with its input.
const (
	bigChild = "TOOLHOST_TEST_BIG_CHILD"
	bigSize  = 64 << 20
)

func TestMain(m *testing.M) {
	if os.Getenv(bigChild) == "" {
		os.Exit(m.Run())
	}
	memory := bytes.Repeat([]byte{1}, bigSize)
	_, _ = os.Stdout.Write(memory[:1])
	_, _ = os.Stdin.Read(memory[1:2])
	runtime.KeepAlive(memory)
}
