package supervisor

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// hangs makes every look at the processes of one plugin hang, as a file system does that
// has gone away, until answer is called. looking receives when a look hangs.
func (k *kept) hangs(t *testing.T, plugin string) (looking <-chan struct{}, answer func()) {
	t.Helper()
	var pid atomic.Int64
	hung, answered := make(chan struct{}, 1), make(chan struct{})
	k.exposed = func(p *sandbox.Process) []string {
		if int64(p.PID()) == pid.Load() {
			select {
			case hung <- struct{}{}:
			default:
			}
			<-answered
		}
		return p.Exposed()
	}
	k.mustCall(t, plugin, "echo")
	pid.Store(int64(k.state(t, plugin).PID))
	return hung, sync.OnceFunc(func() { close(answered) })
}

// TestHungFileSystem: nothing but the calls of the plugin waits for it, and those until
// their time is over.
func TestHungFileSystem(t *testing.T) {
	t.Parallel()
	k := keep(t, "calm", "stubborn")
	k.timing.patrol = time.Hour
	looking, answer := k.hangs(t, "calm")
	defer answer()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with ctx
		_, _, err := k.Run(ctx, "calm", "", tool.Call{ID: "c1", Tool: "echo", Arguments: []byte("{}")}, tool.Sink{})
		ended <- err
	}()
	<-looking
	if s := k.state(t, "calm"); s.Phase != Ready {
		t.Errorf("meanwhile the state is %v, want ready", s.Phase)
	}
	k.mustCall(t, "stubborn", "echo")
	cancel()
	if err := <-ended; tool.AsError(err).Code != tool.Canceled {
		t.Errorf("Run() = %v, want that the call was canceled", err)
	}
	calm := k.managers["calm"].base
	calm.mu.Lock()
	processes := slices.Collect(maps.Values(calm.instances))
	calm.mu.Unlock()
	closed := make(chan error, 1)
	go func() { closed <- k.Close() }() // ends when the file system answers
	for _, i := range processes {
		<-i.ended // the process ends, though it cannot be examined
	}
	answer()
	if err := <-closed; err != nil {
		t.Errorf("Close() = %v", err)
	}
}

// TestCallsLookAfterTheyCame: a file may have been replaced while a look was in progress,
// so that a call which comes meanwhile waits for the next one.
func TestCallsLookAfterTheyCame(t *testing.T) {
	t.Parallel()
	k := keep(t, "calm")
	k.timing.patrol = time.Hour
	k.mustCall(t, "calm", "echo")
	began, answer := make(chan struct{}), make(chan struct{})
	k.exposed = func(p *sandbox.Process) []string {
		began <- struct{}{}
		<-answer
		return p.Exposed()
	}
	calm := k.managers["calm"].base
	call := func() (ended chan error) {
		ended = make(chan error, 1)
		calm.mu.Lock()
		process := slices.Collect(maps.Values(calm.instances))[0]
		go func() { // ends with the look
			defer calm.mu.Unlock()
			ended <- calm.look(t.Context(), process)
		}()
		calm.mu.Lock() // look released it: it waits
		defer calm.mu.Unlock()
		return ended
	}
	first := call()
	<-began
	second, third := call(), call()
	answer <- struct{}{}
	if err := <-first; err != nil {
		t.Errorf("look() = %v", err)
	}
	select {
	case <-began:
	case <-second:
		t.Fatal("a call that came during a look did not wait for the next one")
	}
	answer <- struct{}{}
	for _, ended := range []chan error{second, third} {
		select {
		case <-began:
			t.Fatal("two calls did not share a look")
		case err := <-ended:
			if err != nil {
				t.Errorf("look() = %v", err)
			}
		}
	}
}

// TestWorkspaceBecomesWritable: the process that sees it as it was is replaced.
func TestWorkspaceBecomesWritable(t *testing.T) {
	t.Parallel()
	k := keep(t, "calm")
	var writable atomic.Bool
	k.readOnly = func(string) bool { return !writable.Load() }
	k.mustCall(t, "calm", "echo")
	first := k.state(t, "calm").PID
	k.mustCall(t, "calm", "echo")
	if now := k.state(t, "calm").PID; now != first {
		t.Fatal("the process was replaced although nothing has changed")
	}
	writable.Store(true)
	k.mustCall(t, "calm", "echo")
	if k.state(t, "calm").PID == first {
		t.Error("the process was not replaced")
	}
	if sandbox.ReadOnly(t.TempDir()) {
		t.Error("a temporary directory is said to be read-only")
	}
}

// TestCloseDoesNotWaitForAHungFileSystem: the host ends without an answer.
func TestCloseDoesNotWaitForAHungFileSystem(t *testing.T) {
	t.Parallel()
	k := keep(t, "calm")
	k.timing.patrol, k.timing.hang = time.Millisecond, time.Second
	looking, answer := k.hangs(t, "calm")
	defer answer()
	<-looking
	if err := k.Close(); err == nil || !strings.Contains(err.Error(), "a file system does not answer") {
		t.Errorf("Close() = %v, want that a file system does not answer", err)
	}
	answer()
	k.tasks.Wait()
	k.closeErr = k.run.Close() // which the test sees at its end
}
