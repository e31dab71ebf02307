package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// split is a plugin with a process for read_only calls.
func split(t *testing.T, scope Scope) Plugin {
	t.Helper()
	return Plugin{
		Name: "calm", Path: program(t, "calm"), Confinement: sandbox.Confinement{Workspace: sandbox.WriteWorkspace}, Limits: sandbox.DefaultLimits(),
		Scope: scope, SplitTiers: true,
	}
}

// dirs returns the state directory and the user's directory of the process for the calls of a tier.
func (k *kept) dirs(t *testing.T, tier tool.Tier, caller string) (state, own string) {
	t.Helper()
	text, err := k.callTier(t.Context(), tier, caller, "dirs")
	if err != nil {
		t.Fatalf("Run(dirs) for %s = %v", caller, err)
	}
	state, own, _ = strings.Cut(text, " ")
	return state, own
}

// callTier makes a call of a tier against the published tools, for "user/session".
func (k *kept) callTier(ctx context.Context, tier tool.Tier, caller, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	user, session, _ := strings.Cut(caller, "/")
	call := tool.Call{ID: "tc_1", Tool: name, Arguments: []byte(`{}`), Tier: tier, Context: tool.Context{User: user, Session: session}}
	result, _, err := k.Run(ctx, "calm", k.digest("calm"), call, tool.Sink{})
	return result.Text(), err
}

// owners lists the running processes that are not the base process.
func (k *kept) owners(t *testing.T) string {
	t.Helper()
	var all []string
	for _, i := range k.state(t, "calm").Instances {
		if i.PID > 0 {
			all = append(all, fmt.Sprintf("%s/%s/%v", i.User, i.Session, i.Reader))
		}
	}
	return strings.Join(all, " ")
}

// TestReaderOfEachScope: calls of each tier have their own process, for everybody, each user or each
// session, and its state ends with it.
func TestReaderOfEachScope(t *testing.T) {
	t.Parallel()
	for scope, want := range map[Scope]string{
		Shared:     "//true",
		PerUser:    "ada//false ada//true bob//false bob//true",
		PerSession: "ada/1/false ada/1/true ada/2/false ada/2/true bob/1/false bob/1/true",
	} {
		t.Run(scope.String(), func(t *testing.T) {
			t.Parallel()
			k := keepPlugins(t, split(t, scope))
			if err := k.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			tools := len(k.names("calm"))
			seen := map[string]bool{}
			for _, caller := range []string{"ada/1", "ada/2", "bob/1"} {
				wrote, _ := k.dirs(t, tool.SideEffecting, caller)
				read, own := k.dirs(t, tool.ReadOnly, caller)
				if wrote == read || strings.HasPrefix(read, k.managers["calm"].stateDir()) || !strings.HasPrefix(own, read) {
					t.Errorf("%s: the state is in %s, that of the reader in %s, and the user's part in %s", caller, wrote, read, own)
				}
				if again, _ := k.dirs(t, tool.ReadOnly, caller); again != read {
					t.Errorf("%s: the reader is another process for the next call", caller)
				}
				seen[own] = true
			}
			if got := k.owners(t); got != want {
				t.Errorf("the processes are of %q, want %q", got, want)
			}
			if each := map[Scope]int{Shared: 2, PerUser: 2, PerSession: 3}[scope]; len(seen) != each {
				t.Errorf("the users' directories are %v, want %d", seen, each)
			}
			s := k.state(t, "calm")
			if !s.SplitTiers || s.Phase != Ready || s.Sandbox == nil || s.ReaderSandbox == nil || !slices.Contains(s.ReaderSandbox.Layers, "reader") || slices.Contains(s.Sandbox.Layers, "reader") {
				t.Errorf("the state is %+v", s)
			}
			if got := len(k.names("calm")); got != tools {
				t.Errorf("%d tools are published, before %d", got, tools)
			}
			k.EndSession("1")
			if scope == PerSession {
				eventually(t, "the processes of the sessions have ended", func() bool { return k.owners(t) == "ada/2/false ada/2/true" })
			}
		})
	}
}

// TestCrashOfOneTwin: a crash of the reader costs no call of the other process, and the reverse.
func TestCrashOfOneTwin(t *testing.T) {
	t.Parallel()
	for _, scope := range []Scope{Shared, PerSession} {
		k := keepPlugins(t, split(t, scope))
		if err := k.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for crashing, other := range map[tool.Tier]tool.Tier{tool.ReadOnly: tool.SideEffecting, tool.SideEffecting: tool.ReadOnly} {
			before, _ := k.dirs(t, other, "ada/1")
			eventually(t, "its breaker is open", func() bool {
				_, err := k.callTier(t.Context(), crashing, "ada/1", "exit")
				k.endWait(owner{}, owner{reader: crashing == tool.ReadOnly}, owner{user: "ada", session: "1", reader: crashing == tool.ReadOnly})
				return strings.Contains(fmt.Sprint(err), "is off: it crashed")
			})
			if after, _ := k.dirs(t, other, "ada/1"); after != before {
				t.Errorf("%v: the other process is another one after a crash", scope)
			}
			if s := k.state(t, "calm"); s.LastCrash == nil || s.Crashes == 0 {
				t.Errorf("%v: the state is %+v, want the crashes", scope, s)
			}
			if err := k.Restart(t.Context(), "calm"); err != nil {
				t.Fatal(err)
			}
			k.dirs(t, crashing, "ada/1") // an operator has ended the wait
		}
	}
}

// endWait ends the random waits of pools, but not those of their breakers.
func (k *kept) endWait(owners ...owner) {
	m := k.managers["calm"]
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, of := range owners {
		p := m.scoped[of]
		if of == (owner{}) {
			p = m.base
		}
		if p != nil && !p.backoff.broken {
			p.backoff.until = time.Time{}
		}
	}
}

// TestReaderAtReload: a reload turns SplitTiers on and off.
func TestReaderAtReload(t *testing.T) {
	t.Parallel()
	p := split(t, Shared)
	p.SplitTiers = false
	k := keepPlugins(t, p)
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, on := range []bool{false, true, false, true} {
		p.SplitTiers = on
		k.change(t, p)
		wrote, _ := k.dirs(t, tool.SideEffecting, "ada")
		read, _ := k.dirs(t, tool.ReadOnly, "ada")
		if (wrote != read) != on {
			t.Errorf("with SplitTiers %v, the state is in %s, that of read_only calls in %s", on, wrote, read)
		}
		if got := k.state(t, "calm"); (len(got.Instances) == 1) != on || got.SplitTiers != on {
			t.Errorf("with SplitTiers %v, the state is %+v", on, got)
		}
	}
}

// TestKillEndsBothTwins: a stop of an admin ends the reader too.
func TestKillEndsBothTwins(t *testing.T) {
	t.Parallel()
	for _, scope := range []Scope{Shared, PerUser} {
		h := haltable(t, split(t, scope))
		if err := h.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, tier := range []tool.Tier{tool.ReadOnly, tool.SideEffecting} {
			h.dirs(t, tier, "ada")
		}
		if killed := h.halt(t, everything); killed != 2 {
			t.Errorf("%v: Kill() = %d, want both processes", scope, killed)
		}
		for _, tier := range []tool.Tier{tool.ReadOnly, tool.SideEffecting} {
			if _, err := h.callTier(t.Context(), tier, "ada", "pid"); err == nil || !strings.Contains(err.Error(), errTestStop.Error()) {
				t.Errorf("%v: a call of tier %v = %v", scope, tier, err)
			}
		}
		h.resume(t.Context())
		h.dirs(t, tool.ReadOnly, "ada")
	}
}

// TestReadersCount: the processes of readers count as the others do, and idle ones make room.
func TestReadersCount(t *testing.T) {
	t.Parallel()
	p := split(t, PerSession)
	p.MaxPerUser = 1
	k := keepPlugins(t, p)
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		k.dirs(t, tool.ReadOnly, "ada/1")
		if got := k.owners(t); got != "ada/1/true" {
			t.Errorf("the processes are of %q, want the reader", got)
		}
		k.dirs(t, tool.SideEffecting, "ada/1")
		if got := k.owners(t); got != "ada/1/false" {
			t.Errorf("the processes are of %q, want the other process", got)
		}
	}
	if got := (Plugin{SplitTiers: true}).withDefaults(); got.MaxInstances != 2*defaultMaxInstances || got.MaxPerUser != 2*defaultMaxPerUser {
		t.Errorf("the defaults are %d and %d", got.MaxInstances, got.MaxPerUser)
	}
}

// TestReaderEndsWhenIdle: an idle reader ends, also that of an eager plugin.
func TestReaderEndsWhenIdle(t *testing.T) {
	t.Parallel()
	p := split(t, Shared)
	p.Eager, p.IdleTimeout = true, 50*time.Millisecond
	k := keepPlugins(t, p)
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	base := k.live("calm").proc.PID()
	k.dirs(t, tool.ReadOnly, "ada")
	eventually(t, "the reader has ended", func() bool { return k.owners(t) == "" })
	if s := k.state(t, "calm"); s.PID != base || s.Phase != Ready {
		t.Errorf("the state is %+v, want the process %d", s, base)
	}
}

// TestNoProofNoStart: a plugin does not start on a machine that cannot prove that its reader changes
// nothing, whatever it may do without other layers. The control is the plugin without SplitTiers.
func TestNoProofNoStart(t *testing.T) {
	t.Parallel()
	for _, scope := range []Scope{Shared, PerUser} {
		p := split(t, scope)
		p.Confinement.Isolation, p.Confinement.WarnOnMissing = sandbox.Basic, true // stands for a machine without namespaces
		k := keepPlugins(t, p)
		if err := k.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, tier := range []tool.Tier{tool.ReadOnly, tool.SideEffecting} {
			_, err := k.callTier(t.Context(), tier, "ada", "pid")
			if e := tool.AsError(err); e.Code != tool.Unavailable || !strings.Contains(e.Message, "cannot be started: its sandbox cannot be had on this machine") {
				t.Errorf("%v: a call of tier %v = %v", scope, tier, err)
			}
		}
		if s := k.state(t, "calm"); !strings.Contains(s.Refused, "split_tiers requires ") || strings.Contains(s.Refused, "on_missing") {
			t.Errorf("%v: refused is %q", scope, s.Refused)
		}
		p.SplitTiers = false
		k.change(t, p)
		k.dirs(t, tool.ReadOnly, "ada")
	}
}

// TestReaderWithOtherTools: a reader that lacks a tool, because it has no state, serves the others. A
// call of the tool that it lacks is not sent, nor is one that was checked against other tools.
func TestReaderWithOtherTools(t *testing.T) {
	t.Parallel()
	k := keepPlugins(t, split(t, Shared))
	state, _ := k.dirs(t, tool.SideEffecting, "ada")
	if err := os.WriteFile(filepath.Join(state, "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.Restart(t.Context(), "calm"); err != nil {
		t.Fatal(err)
	}
	if got := len(k.names("calm")); got != len(testTools)+1 {
		t.Fatalf("%d tools are published, want one that depends on the state", got)
	}
	k.dirs(t, tool.ReadOnly, "ada")
	_, err := k.callTier(t.Context(), tool.ReadOnly, "ada", "more")
	if e := tool.AsError(err); e.Code != tool.Unavailable || !strings.Contains(e.Message, "has another tool more in its process for read_only calls") {
		t.Errorf("a call of the tool that the reader lacks = %v", err)
	}
	old := tool.Call{ID: "tc_1", Tool: "pid", Arguments: []byte(`{}`), Tier: tool.ReadOnly, Context: tool.Context{User: "ada"}}
	if _, sent, err := k.Run(t.Context(), "calm", "sha256:old", old, tool.Sink{}); err == nil || sent || !strings.Contains(err.Error(), "has changed since the call was checked") {
		t.Errorf("a call that was checked against other tools is sent: %v", err)
	}
}

// TestBrokenClaimsAreRemembered: the state of a plugin counts them by tool, also after a reload.
func TestBrokenClaimsAreRemembered(t *testing.T) {
	t.Parallel()
	p := split(t, Shared)
	k := keepPlugins(t, p)
	k.NoteBrokenClaim("calm", "peek", "permission denied")
	k.NoteBrokenClaim("calm", "look", "erofs")
	k.NoteBrokenClaim("calm", "peek", "read-only file system")
	k.NoteBrokenClaim("gone", "peek", "erofs")
	p.Limits.OpenFiles++
	k.change(t, p)
	got := k.state(t, "calm").BrokenClaims
	if len(got) != 2 || got[0].Tool != "look" || got[1].Tool != "peek" || got[1].Count != 2 || got[1].Sign != "read-only file system" || got[1].Last.IsZero() {
		t.Errorf("the broken claims are %+v", got)
	}
	for n := range 2 * maxBrokenClaims {
		k.NoteBrokenClaim("calm", fmt.Sprint("tool", n), "erofs")
	}
	if got := len(k.state(t, "calm").BrokenClaims); got != maxBrokenClaims {
		t.Errorf("%d tools are remembered, want at most %d", got, maxBrokenClaims)
	}
}
