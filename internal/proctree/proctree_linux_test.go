package proctree

import (
	"os"
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
