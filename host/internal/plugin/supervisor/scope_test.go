package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// keepScoped keeps the plugin calm, with processes for each user or session.
func keepScoped(t *testing.T, scope Scope, change func(*Plugin)) *kept {
	t.Helper()
	p := Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits(), Scope: scope}
	if change != nil {
		change(&p)
	}
	k := keepPlugins(t, p)
	if err := k.Start(t.Context()); err != nil {
		t.Fatalf("Start() = %v", err)
	}
	return k
}

// callAs runs a tool for a user and a session, as "ada" or "ada/one".
func (k *kept) callAs(ctx context.Context, caller, name, arguments string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	user, session, _ := strings.Cut(caller, "/")
	call := tool.Call{ID: "tc_" + caller, Tool: name, Arguments: []byte(arguments), Context: tool.Context{User: user, Session: session}}
	result, _, err := k.Run(ctx, "calm", "", call, tool.Sink{})
	return result.Text(), err
}

// as runs a tool that works.
func (k *kept) as(t *testing.T, caller, name string) string {
	t.Helper()
	text, err := k.callAs(t.Context(), caller, name, `{}`)
	if err != nil {
		t.Fatalf("Run(%s) for %s = %v", name, caller, err)
	}
	return text
}

// instances returns the owners of the pools that have a process, in order.
func (k *kept) instances(t *testing.T) string {
	t.Helper()
	var all []string
	for _, i := range k.state(t, "calm").Instances {
		if i.PID > 0 {
			all = append(all, strings.TrimSuffix(i.User+"/"+i.Session, "/"))
		}
	}
	return strings.Join(all, " ")
}

// holdAs begins a call that ends when release is called.
func (k *kept) holdAs(t *testing.T, caller string) (release func(), ended <-chan error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "release")
	done, inside := make(chan error, 1), make(chan struct{})
	user, session, _ := strings.Cut(caller, "/")
	call := tool.Call{ID: "tc_hold", Tool: "wait_file", Arguments: []byte(`"` + file + `"`), Context: tool.Context{User: user, Session: session}}
	var once sync.Once
	ctx := t.Context()
	go func() { // ends with the file, or with the test
		_, _, err := k.Run(ctx, "calm", "", call, tool.Sink{Chunk: func(tool.Chunk) { once.Do(func() { close(inside) }) }})
		done <- err
	}()
	select {
	case <-inside:
	case err := <-done:
		t.Fatalf("the call of %s = %v", caller, err)
	}
	return func() {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}, done
}

func TestEachUserHasAProcess(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerUser, nil)
	eventually(t, "the process that described the plugin has ended", func() bool { return k.state(t, "calm").PID == 0 })
	if got := len(k.names("calm")); got != len(testTools) {
		t.Errorf("%d tools are published, want %d", got, len(testTools))
	}
	ada, bob := k.as(t, "ada", "pid"), k.as(t, "bob", "pid")
	if again := k.as(t, "ada/other", "pid"); ada == bob || again != ada {
		t.Errorf("ada has the process %s and then %s, bob has %s", ada, again, bob)
	}
	dirs := map[string]bool{}
	for _, user := range []string{"ada", "bob", "../ada", "", strings.Repeat("x", 10<<10), "a\nb", "root"} {
		state, own, _ := strings.Cut(k.as(t, user, "dirs"), " ")
		if own != state && user != "" || dirs[state] || filepath.Dir(state) != filepath.Join(k.managers["calm"].stateDir(), "users") {
			t.Errorf("the state of %.20q is in %s, the user's directory is %s", user, state, own)
		}
		dirs[state] = true
	}
	s := k.state(t, "calm")
	if s.Phase != Ready || s.Scope != PerUser || len(s.Instances) != len(dirs) || s.Sandbox == nil {
		t.Errorf("state is %+v", s)
	}
	for _, i := range s.Instances {
		if i.Phase != Ready || i.PID <= 1 {
			t.Errorf("the state of a user's process is %+v", i)
		}
	}
	state, _, _ := strings.Cut(k.as(t, "ada", "dirs"), " ")
	if err := k.Restart(t.Context(), "calm"); err != nil {
		t.Fatalf("Restart() = %v", err)
	}
	if after := k.as(t, "ada", "pid"); after == ada {
		t.Errorf("ada still has the process %s after a restart", after)
	}
	if _, err := os.Stat(filepath.Join(state, "was here")); err != nil {
		t.Errorf("the state of ada is lost: %v", err)
	}
}

func TestEachSessionHasAProcess(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerSession, nil)
	one, two, other := k.as(t, "ada/1", "pid"), k.as(t, "ada/2", "pid"), k.as(t, "bob/1", "pid")
	if one == two || one == other || k.as(t, "ada/1", "pid") != one {
		t.Errorf("the processes are %s, %s and %s", one, two, other)
	}
	state, own, _ := strings.Cut(k.as(t, "ada/1", "dirs"), " ")
	if kept, _, _ := strings.Cut(k.as(t, "ada/2", "dirs"), " "); own != state || kept == state {
		t.Errorf("the state of one session is in %s, the user's directory is %s, and the other's in %s", state, own, kept)
	}
	var mu sync.Mutex
	var entered []string
	k.managers["calm"].mu.Lock()
	k.entered = func(plugin, user, session string, phase Phase) {
		mu.Lock()
		defer mu.Unlock()
		entered = append(entered, fmt.Sprint(plugin, " of ", user, "/", session, ": ", phase))
	}
	k.managers["calm"].mu.Unlock()
	k.EndSession("1")
	eventually(t, "the processes of the session have ended", func() bool { return k.instances(t) == "ada/2" })
	mu.Lock()
	if got, want := entered, []string{"calm of ada/1: draining", "calm of bob/1: draining", "calm of ada/1: stopped", "calm of bob/1: stopped"}; len(got) != len(want) || !slices.Contains(got, want[0]) || !slices.Contains(got, want[3]) {
		t.Errorf("told are %q, want %q in some order", got, want)
	}
	mu.Unlock()
	k.log.await(t, "plugin stopped: plugin=calm session=1 user=ada")
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Errorf("the state of the session is left: %v", err)
	}
	if two != k.as(t, "ada/2", "pid") {
		t.Error("the other session has another process")
	}
}

// TestCrashesOfOneUser: the breaker opens for the user whose process crashes, and for nobody else.
func TestCrashesOfOneUser(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerUser, func(p *Plugin) {
		p.Restart.MaxCrashes = 3
		p.Path = copyProgram(t, "calm") // a link that another test makes would count as a new program
	})
	bob := k.as(t, "bob", "pid")
	broken := func() bool {
		_, err := k.callAs(t.Context(), "ada", "exit", `{}`)
		k.managers["calm"].mu.Lock()
		defer k.managers["calm"].mu.Unlock()
		ada := k.managers["calm"].scoped[owner{user: "ada"}]
		if !ada.backoff.broken {
			ada.backoff.until = time.Time{}
		}
		return strings.Contains(fmt.Sprint(err), "is off: it crashed 3 times")
	}
	eventually(t, "ada's breaker is open", broken)
	if again := k.as(t, "bob", "pid"); again != bob {
		t.Errorf("bob has the process %s and then %s", bob, again)
	}
	s := k.state(t, "calm")
	if s.Phase != Ready || s.Crashes != 3 || s.LastCrash == nil || !s.RetryAt.IsZero() {
		t.Errorf("the state of the plugin is %+v", s)
	}
	if i := s.Instances[0]; i.User != "ada" || i.Phase != Broken || i.RetryAt.IsZero() || i.Crashes != 3 {
		t.Errorf("the state of ada's processes is %+v", i)
	}
	if err := k.Restart(t.Context(), "calm"); err != nil {
		t.Fatalf("Restart() = %v", err)
	}
	k.as(t, "ada", "pid")
}

// TestUsersPublishNothing: tools that depend on a user's state are not published.
func TestUsersPublishNothing(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerUser, nil)
	state, _, _ := strings.Cut(k.as(t, "ada", "dirs"), " ")
	if err := os.WriteFile(filepath.Join(state, "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.Restart(t.Context(), "calm"); err != nil {
		t.Fatalf("Restart() = %v", err)
	}
	digest := k.digest("calm")
	for user, want := range map[string]string{"ada": "offers this caller other tools than everybody else", "bob": "<nil>"} {
		_, _, err := k.Run(t.Context(), "calm", digest, tool.Call{ID: "tc_1", Tool: "pid", Arguments: []byte(`{}`), Context: tool.Context{User: user}}, tool.Sink{})
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("the call of %s = %v, want %s", user, err, want)
		}
	}
	if k.digest("calm") != digest || len(k.names("calm")) != len(testTools) {
		t.Error("the process of one user changed the tools of all")
	}
}

// TestRoomForUsers: with as many processes as there may be, an idle one makes room, the one that
// was idle for longest first; if all have calls, a further user waits.
func TestRoomForUsers(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerUser, func(p *Plugin) { p.MaxInstances = 2 })
	release, ended := k.holdAs(t, "ada")
	bob := k.as(t, "bob", "pid")
	k.as(t, "carl", "pid")
	if got := k.instances(t); got != "ada carl" {
		t.Errorf("the processes are of %s, want ada's and carl's", got)
	}
	releaseCarl, carlEnded := k.holdAs(t, "carl")
	k.Supervisor.timing.room = 50 * time.Millisecond // nothing else runs that reads it
	_, err := k.callAs(t.Context(), "dora", "pid", `{}`)
	if e := tool.AsError(err); e == nil || e.Code != tool.Unavailable || !e.Retryable || !strings.Contains(e.Message, "all of its 2 processes have calls") {
		t.Errorf("the call of a user without room = %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.callAs(ctx, "dora", "pid", `{}`); tool.AsError(err).Code != tool.Canceled {
		t.Errorf("a canceled call of a user without room = %v", err)
	}
	k.Supervisor.timing.room = time.Minute
	var told []string
	waits := make(chan string, 1)
	go func() { // ends with the call
		call := tool.Call{ID: "tc_bob", Tool: "pid", Arguments: []byte(`{}`), Context: tool.Context{User: "bob"}}
		result, _, err := k.Run(t.Context(), "calm", "", call, tool.Sink{Progress: func(p tool.Progress) { told = append(told, p.Message) }})
		waits <- fmt.Sprint(result.Text(), err)
	}()
	eventually(t, "bob waits", func() bool {
		m := k.managers["calm"]
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.queue) == 1
	})
	release()
	if err := <-ended; err != nil {
		t.Errorf("the call of ada = %v", err)
	}
	if got := <-waits; got == bob+"<nil>" || !strings.HasSuffix(got, "<nil>") {
		t.Errorf("the call of bob = %s, want another process than %s", got, bob)
	}
	if got, want := strings.Join(told, "\n"), `waits until the plugin "calm" has room for another process`; got != want {
		t.Errorf("bob is told %q, want %q", got, want)
	}
	releaseCarl()
	if err := <-carlEnded; err != nil {
		t.Errorf("the call of carl = %v", err)
	}
}

// TestFairRoom: the user with the fewest processes is next, and no user has more than its share.
func TestFairRoom(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerSession, func(p *Plugin) { p.MaxInstances, p.MaxPerUser = 4, 2 })
	m := k.managers["calm"]
	queued := func(n int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d wait", n), func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.queue) == n
		})
	}
	releases, ends := map[string]func(){}, map[string]<-chan error{}
	for _, caller := range []string{"ada/1", "ada/2", "bob/1", "bob/2"} {
		releases[caller], ends[caller] = k.holdAs(t, caller)
	}
	got := make(chan string, 3)
	for n, caller := range []string{"ada/3", "bob/3", "carl/1"} {
		go func() { // ends with the call
			_, err := k.callAs(t.Context(), caller, "pid", `{}`)
			got <- fmt.Sprint(caller, " ", err)
		}()
		queued(n + 1)
	}
	releases["bob/1"]() // its process makes room for carl, who has none
	if first := <-got; first != "carl/1 <nil>" {
		t.Errorf("first comes %s, want carl", first)
	}
	if second := <-got; second != "bob/3 <nil>" { // ada has two of two
		t.Errorf("then comes %s, want bob", second)
	}
	queued(1)
	releases["ada/1"]()
	if third := <-got; third != "ada/3 <nil>" {
		t.Errorf("then comes %s, want ada", third)
	}
	releases["ada/2"]()
	releases["bob/2"]()
	for caller, ended := range ends {
		if err := <-ended; err != nil {
			t.Errorf("the call of %s = %v", caller, err)
		}
	}
}

// TestManySessions: nothing is left of sessions that came and went.
func TestManySessions(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerSession, func(p *Plugin) { p.MaxInstances, p.MaxPerUser = 6, 3 })
	var all sync.WaitGroup
	for n := range 24 {
		all.Go(func() {
			caller := fmt.Sprintf("u%d/s%d", n%4, n)
			if _, err := k.callAs(t.Context(), caller, "pid", `{}`); err != nil {
				t.Errorf("the call of %s = %v", caller, err)
			}
			k.EndSession(fmt.Sprintf("s%d", n))
		})
	}
	all.Wait()
	m := k.managers["calm"]
	eventually(t, "no pool and no directory is left", func() bool {
		m.mu.Lock()
		pools := len(m.scoped)
		m.mu.Unlock()
		left, err := os.ReadDir(k.run.Path)
		return pools == 0 && err == nil && len(left) <= 1 // the lock
	})
}

// TestWaitEndsWithAChange: calls that wait for room go to the new processes after a reload.
func TestWaitEndsWithAChange(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerUser, func(p *Plugin) { p.MaxInstances = 1 })
	release, ended := k.holdAs(t, "ada")
	waits := make(chan error, 1)
	go func() { // ends with the call
		_, err := k.callAs(t.Context(), "bob", "pid", `{}`)
		waits <- err
	}()
	m := k.managers["calm"]
	eventually(t, "bob waits", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.queue) == 1
	})
	p := m.plugin
	p.MaxInstances = 2
	change, err := k.Prepare(t.Context(), []Plugin{p})
	if err != nil {
		t.Fatalf("Prepare() = %v", err)
	}
	change.Commit()
	if err := <-waits; err != nil {
		t.Errorf("the call of bob = %v", err)
	}
	release()
	if err := <-ended; err != nil {
		t.Errorf("the call of ada = %v", err)
	}
}
