package supervisor

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestMemoryClaims: the user with the least memory is next, of several the first one, and nothing
// smaller overtakes. What serves everybody has no memory.
func TestMemoryClaims(t *testing.T) {
	t.Parallel()
	m := memory{size: 10, of: map[string]tool.ByteSize{}}
	ask := func(user string, size tool.ByteSize) *claim {
		c := &claim{user: user, size: size, granted: make(chan struct{})}
		m.ask(c)
		return c
	}
	state := func(claims ...*claim) string {
		var all []string
		for _, c := range claims {
			if isClosed(c.granted) {
				all = append(all, fmt.Sprint(c.user, int(c.size)))
			}
		}
		of := map[string]int{}
		for user, used := range m.of {
			of[user] = int(used)
		}
		return fmt.Sprintf("%s of %d: %v", strings.Join(all, " "), m.used, of)
	}
	ada, bob := ask("ada", 4), ask("bob", 5)
	large, adas, small := ask("carl", 6), ask("ada", 2), ask("carl", 1)
	everybodys := ask("", 3)
	want := func(what, want string) {
		t.Helper()
		if got := state(ada, bob, adas, large, small, everybodys); got != want {
			t.Errorf("%s: granted %s, want %s", what, got, want)
		}
	}
	want("at first", "ada4 bob5 of 9: map[ada:4 bob:5]")
	m.end(ada)
	if !m.lacks() {
		t.Error("4 and 1 of 10 suffice for claims of 6, 2, 1 and 3")
	}
	m.release(ada)
	want("after a release", "ada4 bob5 of 5: map[bob:5]") // carl has none, and the larger claim is first
	if !m.release(large) || m.release(bob) {
		t.Error("release() does not tell which claims waited")
	}
	want("after the next gave up", "ada4 bob5 ada2 carl1 3 of 6: map[ada:2 carl:1]")
	more := ask("dora", 100)
	if m.resize(0); !isClosed(more.granted) {
		t.Error("without a bound, a claim waits")
	}
	if m.resize(10); m.lacks() {
		t.Error("none waits, and memory is lacking")
	}
	forced := m.take("ada", 1)
	if m.end(forced); m.lacks() {
		t.Error("none waits, and memory is lacking")
	}
	for _, c := range []*claim{more, adas, small, everybodys, forced} {
		m.release(c)
	}
	m.end(adas) // its last call was lost with the process
	if m.used != 0 || m.ending != 0 || len(m.of) != 0 {
		t.Errorf("%d is used in the end, %d of it ends, %v", m.used, m.ending, m.of)
	}
}

// keepTwo keeps the plugin calm, with a process for each user, and the plugin everybody, with one for
// all. Together they may have the memory of so many processes.
func keepTwo(t *testing.T, processes tool.ByteSize) *kept {
	t.Helper()
	limits := sandbox.DefaultLimits()
	k := keepPlugins(t,
		Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: limits, Scope: PerUser},
		Plugin{Name: "everybody", Path: program(t, "calm"), Confinement: plain, Limits: limits})
	k.BoundMemory(processes * limits.Memory)
	if err := k.Start(t.Context()); err != nil {
		t.Fatalf("Start() = %v", err)
	}
	return k
}

// running returns the owners of all processes of both plugins.
func (k *kept) running(t *testing.T) string {
	t.Helper()
	owners := k.instances(t)
	if k.state(t, "everybody").PID > 0 {
		owners += " everybody"
	}
	return strings.TrimSpace(owners)
}

// claims returns how many calls wait for memory.
func (k *kept) claims() int {
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	return len(k.memory.queue)
}

// wantNoClaims closes the Supervisor and reports claims that are left.
func (k *kept) wantNoClaims(t *testing.T) {
	t.Helper()
	if err := k.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if m := &k.memory; m.used != 0 || m.ending != 0 || len(m.of)+len(m.queue) > 0 {
		t.Errorf("%v are claimed in the end, %v end, users have %v, and %d claims wait", m.used, m.ending, m.of, len(m.queue))
	}
}

// TestMemoryOfAllPlugins: if the processes of all plugins have as much memory as they may have, an
// idle one of any plugin makes room; if all have calls, a further call waits, and is told so.
func TestMemoryOfAllPlugins(t *testing.T) {
	t.Parallel()
	k := keepTwo(t, 2)
	releaseAda, adaEnded := k.holdAs(t, "ada")
	k.as(t, "bob", "pid")
	if got := k.running(t); got != "ada bob" {
		t.Errorf("the processes are of %s, want ada's and bob's", got)
	}
	if _, err := k.call(t, "everybody", "pid", `{}`); err != nil {
		t.Fatalf("the call of the other plugin = %v", err)
	}
	if got := k.running(t); got != "ada everybody" {
		t.Errorf("the processes are of %s, want ada's and everybody's", got)
	}
	releaseBob, bobEnded := k.holdAs(t, "bob")
	k.timing.room = 50 * time.Millisecond // nothing else runs that reads it
	_, err := k.call(t, "everybody", "pid", `{}`)
	if e := tool.AsError(err); e == nil || e.Code != tool.Unavailable || !e.Retryable || !strings.Contains(e.Message, "as much memory as they may have, and all have calls") {
		t.Errorf("a call without memory = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.callAs(ctx, "carl", "pid", `{}`); tool.AsError(err).Code != tool.Canceled {
		t.Errorf("a canceled call without memory = %v", err)
	}
	if n := k.claims(); n != 0 {
		t.Errorf("%d claims are left of calls that have ended", n)
	}
	k.timing.room = time.Minute
	var told []string
	ends := make(chan string, 2)
	go func() { // ends with the call
		_, err := k.callAs(t.Context(), "carl", "pid", `{}`)
		ends <- fmt.Sprint("carl ", err)
	}()
	eventually(t, "carl waits", func() bool { return k.claims() == 1 })
	go func() { // ends with the call
		call := tool.Call{ID: "tc_all", Tool: "pid", Arguments: []byte(`{}`), Context: tool.Context{User: "ada"}}
		_, _, err := k.Run(t.Context(), "everybody", "", call, tool.Sink{Progress: func(p tool.Progress) { told = append(told, p.Message) }})
		ends <- fmt.Sprint("everybody ", err)
	}()
	eventually(t, "both wait", func() bool { return k.claims() == 2 })
	releaseAda()
	for _, want := range []string{"carl <nil>", "everybody <nil>"} { // neither has memory
		if got := <-ends; got != want {
			t.Errorf("next ends %s, want %s", got, want)
		}
	}
	if got, want := strings.Join(told, "\n"), `waits until there is memory for another process of the plugin "everybody"`; got != want {
		t.Errorf("a call that waits is told %q, want %q", got, want)
	}
	releaseBob()
	for who, ended := range map[string]<-chan error{"ada": adaEnded, "bob": bobEnded} {
		if err := <-ended; err != nil {
			t.Errorf("the call of %s = %v", who, err)
		}
	}
	k.wantNoClaims(t)
}

// TestMemoryChanges: a call that waits for memory goes on if there is more by a reload, and with the
// new processes of its plugin.
func TestMemoryChanges(t *testing.T) {
	t.Parallel()
	k := keepTwo(t, 1)
	limit := sandbox.DefaultLimits().Memory
	release, ended := k.holdAs(t, "ada")
	bob := make(chan error, 2)
	call := func() {
		_, err := k.callAs(t.Context(), "bob", "pid", `{}`)
		bob <- err
	}
	go call() // ends with the call
	eventually(t, "bob waits", func() bool { return k.claims() == 1 })
	k.BoundMemory(2 * limit)
	if err := <-bob; err != nil {
		t.Errorf("the call of bob with more memory = %v", err)
	}
	releaseBob, bobEnded := k.holdAs(t, "bob")
	go func() { // ends with the call
		_, err := k.call(t, "everybody", "pid", `{}`)
		bob <- err
	}()
	eventually(t, "the call of the other plugin waits", func() bool { return k.claims() == 1 })
	calm, everybody := k.managers["calm"].plugin, k.managers["everybody"].plugin
	everybody.IdleTimeout = time.Hour
	change, err := k.Prepare(t.Context(), []Plugin{calm, everybody})
	if err != nil {
		t.Fatalf("Prepare() = %v", err)
	}
	change.Commit()
	k.BoundMemory(3 * limit)
	if err := <-bob; err != nil {
		t.Errorf("the call of a plugin that a reload has changed = %v", err)
	}
	release()
	releaseBob()
	for who, ended := range map[string]<-chan error{"ada": ended, "bob": bobEnded} {
		if err := <-ended; err != nil {
			t.Errorf("the call of %s = %v", who, err)
		}
	}
}

// TestHostWaitsForNoMemory: a plugin that is restarted, and one that is eager, count and do not wait.
func TestHostWaitsForNoMemory(t *testing.T) {
	t.Parallel()
	k := keepTwo(t, 1)
	release, ended := k.holdAs(t, "ada")
	waits := make(chan error, 1)
	go func() { // ends with the call
		_, err := k.call(t, "everybody", "pid", `{}`)
		waits <- err
	}()
	eventually(t, "a call waits", func() bool { return k.claims() == 1 })
	if err := k.Restart(t.Context(), "everybody"); err != nil {
		t.Errorf("Restart() = %v", err)
	}
	if err := <-waits; err != nil {
		t.Errorf("the call that waited = %v", err)
	}
	if got, limit := k.memory.used, sandbox.DefaultLimits().Memory; got != 2*limit {
		t.Errorf("%v are claimed, want %v", got, 2*limit)
	}
	release()
	if err := <-ended; err != nil {
		t.Errorf("the call of ada = %v", err)
	}
}

// TestMemoryOfLostCalls: processes that are killed with their calls, also while they stop, leave no
// claim.
func TestMemoryOfLostCalls(t *testing.T) {
	t.Parallel()
	k := keepTwo(t, 2)
	_, adaEnded := k.holdAs(t, "ada")
	_, bobEnded := k.holdAs(t, "bob")
	m := k.managers["calm"]
	m.mu.Lock()
	for _, i := range m.scoped[owner{user: "ada"}].instances {
		i.stuck = true // it waits for its call when it stops
		m.scoped[owner{user: "ada"}].retire(i)
	}
	m.mu.Unlock()
	for _, i := range k.state(t, "calm").Instances {
		if err := syscall.Kill(i.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for _, ended := range []<-chan error{adaEnded, bobEnded} {
		if err := <-ended; tool.AsError(err).Code != tool.PluginCrashed {
			t.Errorf("a call of a killed process = %v", err)
		}
	}
	k.wantNoClaims(t)
}
