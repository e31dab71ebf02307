package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// queued waits until that many pools wait for room.
func (k *kept) queued(t *testing.T, n int) {
	t.Helper()
	m := k.managers["calm"]
	eventually(t, fmt.Sprintf("%d wait", n), func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.queue) == n
	})
}

// starts waits until a process of an owner starts.
func (k *kept) starts(t *testing.T, of owner) {
	t.Helper()
	m := k.managers["calm"]
	eventually(t, "it starts", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		p := m.scoped[of]
		return p != nil && p.starting != nil
	})
}

// goAs begins a call.
func (k *kept) goAs(ctx context.Context, caller string) <-chan error {
	done := make(chan error, 1)
	go func() { // ends with the call
		_, err := k.callAs(ctx, caller, "pid", `{}`)
		done <- err
	}()
	return done
}

// replaceProgram changes the content of a program.
func replaceProgram(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.Remove(path)
	}
	if err == nil {
		err = os.WriteFile(path, append(content, 'x'), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRoomOfAStartWithoutCallers: the process of a call that was canceled during the start makes
// room for others.
func TestRoomOfAStartWithoutCallers(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerUser, func(p *Plugin) { p.MaxInstances, p.Path = 1, program(t, "slowconnect") })
	ctx, cancel := context.WithCancel(t.Context())
	ada := k.goAs(ctx, "ada")
	k.starts(t, owner{user: "ada"})
	bob := k.goAs(t.Context(), "bob")
	k.queued(t, 1)
	cancel()
	if err := <-ada; tool.AsError(err).Code != tool.Canceled {
		t.Errorf("the call of ada = %v", err)
	}
	if err := <-bob; err != nil {
		t.Errorf("the call of bob = %v", err)
	}
}

// TestProgramOfUsersIsReplaced: after a change of the program, users get a new process, and tools
// that depend on a user's state are not published.
func TestProgramOfUsersIsReplaced(t *testing.T) {
	t.Parallel()
	path := copyProgram(t, "calm")
	k := keepScoped(t, PerUser, func(p *Plugin) { p.Path = path })
	before := k.digest("calm")
	state, _, _ := strings.Cut(k.as(t, "ada", "dirs"), " ")
	if err := os.WriteFile(filepath.Join(state, "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.Restart(t.Context(), "calm"); err != nil {
		t.Fatal(err)
	}
	old := k.as(t, "bob", "pid")
	replaceProgram(t, path)
	k.as(t, "ada", "pid") // the first process of the new program
	if k.digest("calm") == before || len(k.names("calm")) != len(testTools) {
		t.Errorf("%d tools are published, want %d of the new program", len(k.names("calm")), len(testTools))
	}
	eventually(t, "bob has a process of the new program", func() bool {
		call := tool.Call{ID: "tc_1", Tool: "pid", Arguments: []byte(`{}`), Context: tool.Context{User: "bob"}}
		result, _, err := k.Run(t.Context(), "calm", k.digest("calm"), call, tool.Sink{})
		return err == nil && result.Text() != old
	})
}

// TestSessionsShareTheirHistory: a new session of a user does not escape what delays the next start.
func TestSessionsShareTheirHistory(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerSession, nil)
	eventually(t, "ada waits after crashes", func() bool {
		_, err := k.callAs(t.Context(), fmt.Sprintf("ada/%d", time.Now().UnixNano()), "exit", `{}`)
		return strings.Contains(fmt.Sprint(err), "is not started again yet")
	})
	m := k.managers["calm"]
	m.mu.Lock()
	m.histories[owner{user: "ada"}].backoff.until = time.Now().Add(time.Hour) // a random time otherwise
	m.mu.Unlock()
	k.as(t, "bob/1", "pid")
	s := k.state(t, "calm")
	if len(s.Instances) != 2 || s.Crashes < 2 {
		t.Fatalf("the state is %+v, want bob's process, ada's wait and all crashes", s)
	}
	if ada := s.Instances[0]; ada.User != "ada" || ada.Phase != Backoff || ada.RetryAt.IsZero() || ada.LastCrash == nil || ada.Crashes != s.Crashes {
		t.Errorf("the state of ada is %+v", ada)
	}
	if err := k.Restart(t.Context(), "calm"); err != nil {
		t.Fatalf("Restart() = %v", err)
	}
	k.as(t, "ada/new", "pid") // an operator has ended the wait
}

// TestEvictionTakesNoMore: turns that wait for a place of their own user end no process of others.
func TestEvictionTakesNoMore(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerSession, func(p *Plugin) { p.MaxInstances, p.MaxPerUser = 6, 2 })
	releases := []func(){}
	for _, caller := range []string{"ada/1", "ada/2", "eve/1"} {
		release, _ := k.holdAs(t, caller)
		releases = append(releases, release)
	}
	for _, caller := range []string{"bob/1", "carl/1", "dora/1"} {
		k.as(t, caller, "pid")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waiting []<-chan error
	for n := range 4 {
		waiting = append(waiting, k.goAs(ctx, fmt.Sprintf("ada/w%d", n)))
		k.queued(t, n+1)
	}
	k.as(t, "frank/1", "pid")
	if got := len(strings.Fields(k.instances(t))); got != 6 {
		t.Errorf("%d processes are left, want 6: one has made room", got)
	}
	cancel()
	for _, call := range waiting {
		<-call
	}
	for _, release := range releases {
		release()
	}
}

// TestQueueOfOneUser: the queue of one user is bounded, and does not block other users.
func TestQueueOfOneUser(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerSession, func(p *Plugin) { p.MaxInstances, p.MaxPerUser = 3, 1 })
	release, ended := k.holdAs(t, "ada/x")
	ctx, cancel := context.WithCancel(t.Context())
	var waiting []<-chan error
	for n := range maxTurns {
		waiting = append(waiting, k.goAs(ctx, fmt.Sprintf("ada/%d", n)))
	}
	k.queued(t, maxTurns)
	if _, err := k.callAs(t.Context(), "ada/more", "pid", `{}`); !strings.Contains(fmt.Sprint(err), "sessions of this user wait for a process") {
		t.Errorf("one more call of ada = %v", err)
	}
	k.as(t, "bob/1", "pid")
	cancel()
	for _, call := range waiting {
		<-call
	}
	release()
	if err := <-ended; err != nil {
		t.Errorf("the call of ada = %v", err)
	}
}

// TestCallsOutliveTheirSession: a call goes on when its session ends, and the process ends with it;
// so does one that was starting.
func TestCallsOutliveTheirSession(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerSession, func(p *Plugin) { p.Path = program(t, "slowconnect") })
	release, ended := k.holdAs(t, "ada/1")
	bob := k.goAs(t.Context(), "bob/2")
	k.starts(t, owner{user: "bob", session: "2"})
	k.EndSession("1")
	k.EndSession("2")
	if err := <-bob; err != nil {
		t.Errorf("the call of a session that ended during the start = %v", err)
	}
	eventually(t, "bob's process has ended", func() bool { return k.instances(t) == "ada/1" })
	release()
	if err := <-ended; err != nil {
		t.Errorf("the call of a session that ended = %v", err)
	}
	eventually(t, "ada's process has ended", func() bool { return k.instances(t) == "" })
}

// TestScopeChangesBackAndForth: a plugin keeps its users' files through changes of its scope.
func TestScopeChangesBackAndForth(t *testing.T) {
	t.Parallel()
	p := Plugin{Name: "calm", Path: program(t, "calm"), Confinement: sandbox.Confinement{Isolation: sandbox.Auto}, Limits: sandbox.DefaultLimits()}
	k := keepPlugins(t, p)
	for _, scope := range []Scope{Shared, PerUser, Shared, PerUser} {
		p.Scope = scope
		change, err := k.Prepare(t.Context(), []Plugin{p})
		if err != nil {
			t.Fatalf("Prepare(%v) = %v", scope, err)
		}
		change.Commit()
		for _, user := range []string{"ada", "bob"} {
			if _, own, _ := strings.Cut(k.as(t, user, "dirs"), " "); !strings.HasPrefix(own, filepath.Join(k.managers["calm"].stateDir(), "users")) {
				t.Errorf("%v: the directory of %s is %s", scope, user, own)
			}
		}
	}
}

// TestLinkIsNoUserDir: a link that a shared process has left is not the directory of a user's process.
func TestLinkIsNoUserDir(t *testing.T) {
	t.Parallel()
	k := keepScoped(t, PerUser, nil)
	state, _, _ := strings.Cut(k.as(t, "bob", "dirs"), " ")
	dir, err := k.managers["calm"].userDir("ada")
	if err != nil || filepath.Dir(dir) != filepath.Dir(state) {
		t.Fatalf("the directory of ada is %s, %v; bob's is %s", dir, err, state)
	}
	victim := t.TempDir()
	if err = os.Remove(dir); err == nil {
		err = os.Symlink(victim, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.callAs(t.Context(), "ada", "dirs", `{}`); err == nil {
		t.Error("a process starts with a link as its directory")
	}
	if left, err := os.ReadDir(victim); err != nil || len(left) > 0 {
		t.Errorf("the target of the link has %v, %v", left, err)
	}
}

// TestWorkspaceThatIsNotSeen: a plugin without the workspace does not miss it.
func TestWorkspaceThatIsNotSeen(t *testing.T) {
	t.Parallel()
	p := Plugin{Name: "calm", Path: program(t, "calm"), Confinement: sandbox.Confinement{Isolation: sandbox.Auto}, Limits: sandbox.DefaultLimits()}
	k := keepPlugins(t, p)
	first := k.mustCall(t, "calm", "pid")
	if err := os.Rename(k.workspace, filepath.Join(t.TempDir(), "elsewhere")); err != nil {
		t.Fatal(err)
	}
	if got := k.mustCall(t, "calm", "pid"); got != first {
		t.Errorf("the process is %s, before %s", got, first)
	}
}
