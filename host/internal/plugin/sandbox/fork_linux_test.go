package sandbox

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestForkWaitsForWriters mounts a file while a program is being written: the process that
// mounts starts later. It would hold the program open for writing, and the kernel executes no
// such file.
func TestForkWaitsForWriters(t *testing.T) {
	syscall.ForkLock.RLock() // as who writes a program
	ended := make(chan error, 1)
	go func() { ended <- (&Process{pid: os.Getpid()}).mountReadOnly("/nothing", FileID{}) }() // ends with the process that mounts
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for syscall.ForkLock.TryRLock() { // until someone waits to start a process
		syscall.ForkLock.RUnlock()
		select {
		case err := <-ended:
			syscall.ForkLock.RUnlock()
			t.Fatalf("the process has started and ended: %v", err)
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
	syscall.ForkLock.RUnlock()
	if err := <-ended; err == nil {
		t.Error("a file that does not exist was mounted")
	}
}
