package mcpserver

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// peer returns a client's process. Its process ID is larger than any on Linux.
func peer(pid int) auth.Peer {
	return func() (auth.Process, error) { return auth.Process{PID: pid, Started: "1"}, nil }
}

// TestSessionsOfProcesses checks that each process has its own session for each credential.
func TestSessionsOfProcesses(t *testing.T) {
	var s sessions
	defer s.close()
	first := s.ofProcess("ann", peer(1<<30))
	if !auth.SessionEnds(first) {
		t.Errorf("the session %q is no session of the host's", first)
	}
	if again := s.ofProcess("ann", peer(1<<30)); again != first {
		t.Errorf("the same process has the sessions %q and %q", first, again)
	}
	for name, other := range map[string]string{
		"another process":    s.ofProcess("ann", peer(1<<30+1)),
		"another credential": s.ofProcess("bob", peer(1<<30)),
		"a later process of the same number": s.ofProcess("ann", func() (auth.Process, error) {
			return auth.Process{PID: 1 << 30, Started: "2"}, nil
		}),
	} {
		if other == first || other == "" {
			t.Errorf("%s has the session %q, the first has %q", name, other, first)
		}
	}
	unknown := func() (auth.Process, error) { return auth.Process{}, errors.New("not told") }
	if got := s.ofProcess("ann", unknown); got != "" {
		t.Errorf("a process that is not known has the session %q", got)
	}
	if got := s.ofProcess("ann", nil); got != "" {
		t.Errorf("a request from nowhere has the session %q", got)
	}
}

// TestSessionEndsWithItsProcess checks the session of a process that has ended, and that of
// the test's own process.
func TestSessionEndsWithItsProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return // this system cannot identify processes
	}
	self := thisProcess(t)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards ended
		var ended []string
		s := sessions{ended: func(id string) {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, id)
		}}
		dead, alive := s.ofProcess("ann", peer(1<<30)), s.ofProcess("ann", func() (auth.Process, error) { return self, nil })
		<-time.After(10*lookForProcess + time.Second)
		synctest.Wait()
		mu.Lock()
		if !slices.Equal(ended, []string{dead}) {
			t.Errorf("the sessions %q have ended, want %q and not %q", ended, dead, alive)
		}
		mu.Unlock()
		if again := s.ofProcess("ann", peer(1<<30)); again == dead {
			t.Error("a session that has ended is given again")
		}
		s.close()
	})
}

// thisProcess returns the process of the test.
func thisProcess(t *testing.T) auth.Process {
	t.Helper()
	for _, started := range startsOf(t) {
		if p := (auth.Process{PID: os.Getpid(), Started: started}); p.Lives() {
			return p
		}
	}
	t.Fatal("this process is not found to live")
	return auth.Process{}
}

// startsOf returns all numbers in /proc/self/stat, one of which is the start.
func startsOf(t *testing.T) (numbers []string) {
	t.Helper()
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	number := ""
	for _, c := range string(stat) + " " {
		if c >= '0' && c <= '9' {
			number += string(c)
		} else if number != "" {
			numbers, number = append(numbers, number), ""
		}
	}
	return numbers
}

// TestProcessesAreBounded begins one session more than a credential may have: its session that
// was unused for longest ends, and those of other credentials stay.
func TestProcessesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		s := sessions{ended: func(id string) { ended = append(ended, id) }}
		defer s.close()
		self := auth.Process{PID: os.Getpid()}
		nth := func(n int) auth.Peer {
			return func() (auth.Process, error) { return auth.Process{PID: self.PID, Started: strconv.Itoa(n)}, nil }
		}
		s.ofProcess("bob", nth(0))
		var ids []string
		for n := range maxSessions {
			ids = append(ids, s.ofProcess("ann", nth(n)))
			<-time.After(time.Microsecond)
		}
		s.ofProcess("ann", nth(0)) // it is used again
		<-time.After(time.Microsecond)
		s.ofProcess("ann", nth(maxSessions))
		if !slices.Equal(ended, ids[1:2]) {
			t.Errorf("the sessions %q have ended, want %q", ended, ids[1:2])
		}
		ended = nil
	})
}
