package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// configured returns the options of a plugin with the behaviour and settings.
func configured(t *testing.T, mode, settings string) Plugin {
	t.Helper()
	return Plugin{Name: mode, Path: copyProgram(t, mode), Confinement: plain, Limits: sandbox.DefaultLimits(), Settings: fixed(settings)}
}

func fixed(settings string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return []byte(settings), nil }
}

// with returns options with other settings.
func (p Plugin) with(settings string) Plugin {
	p.Settings = fixed(settings)
	return p
}

// change prepares and commits a set of plugins.
func (k *kept) change(t *testing.T, plugins ...Plugin) {
	t.Helper()
	c, err := k.Prepare(t.Context(), plugins)
	if err != nil {
		t.Fatalf("Prepare() = %v", err)
	}
	c.Commit()
}

// TestChange replaces a set of plugins by another: one stays, one is removed, one is new, and
// the others get other limits, another sandbox, other settings or another program.
func TestChange(t *testing.T) {
	t.Parallel()
	stays, goes, limited, set, upgraded := configured(t, "stays", `{"a":1}`), configured(t, "goes", `{}`), configured(t, "limited", `{}`), configured(t, "set", `{}`), configured(t, "upgraded", `{}`)
	confined := configured(t, "confined", `{}`)
	confined.Confinement = sandbox.Confinement{Isolation: sandbox.Basic, Read: []string{"/srv", "/opt"}}
	stays.IdleTimeout = 10 * time.Minute // the default, spelled out
	stays.Confinement = sandbox.Confinement{Require: []sandbox.Layer{sandbox.LayerRlimits}, Read: []string{"/srv"}}
	k := keepPlugins(t, stays, goes, limited, set, upgraded, confined)
	pids := make(map[string]string)
	digests := make(map[string]string)
	for _, s := range k.Plugins() {
		pids[s.Name] = k.mustCall(t, s.Name, "pid")
		digests[s.Name] = k.digest(s.Name)
	}
	went := k.managers["goes"]

	comes := configured(t, "comes", `{}`)
	stays = stays.with(`{"a":1}`) // another function
	stays.IdleTimeout, stays.PassEnv = 0, []string{}
	stays.Confinement = sandbox.Confinement{ // the same, in other lists, and the defaults spelled out
		Require: []sandbox.Layer{sandbox.LayerRlimits}, Read: []string{"/srv"}, Write: []string{}, TmpSize: sandbox.DefaultTmpSize,
	}
	confined.Confinement = sandbox.Confinement{Isolation: sandbox.Basic, Read: []string{"/srv", "/var"}}
	limited.Limits.OpenFiles++
	rebuild(t, upgraded.Path)
	c, err := k.Prepare(t.Context(), []Plugin{comes, upgraded, set.with(`{"list":"more"}`), limited, confined, stays})
	if err != nil {
		t.Fatal(err)
	}
	for name, pid := range pids { // nothing has happened yet
		if got := k.mustCall(t, name, "pid"); got != pid || k.digest(name) != digests[name] {
			t.Errorf("%s: process %s takes calls before Commit, digest %.8s; want %s, %.8s", name, got, k.digest(name), pid, digests[name])
		}
	}
	if _, err := k.call(t, "comes", "echo", `{}`); err == nil || len(k.names("comes")) > 0 {
		t.Errorf("Run() of a plugin that comes = %v before Commit, tools %v", err, k.names("comes"))
	}
	c.Commit()
	c.Commit()
	c.Discard()

	var order []string
	for _, s := range k.Plugins() {
		order = append(order, s.Name)
	}
	if diff := cmp.Diff([]string{"comes", "upgraded", "set", "limited", "confined", "stays"}, order); diff != "" {
		t.Errorf("Plugins() (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name                string
		samePID, sameDigest bool
		tools               int
	}{
		{"stays", true, true, len(testTools)},
		{"limited", false, true, len(testTools)}, // calls that were checked before may continue
		{"confined", false, true, len(testTools)},
		{"set", false, false, len(testTools) + 1},
		{"upgraded", false, false, len(testTools)},
		{"comes", false, false, len(testTools)},
	} {
		if got := k.mustCall(t, tt.name, "pid") == pids[tt.name]; got != tt.samePID {
			t.Errorf("%s: the same process takes calls: %v, want %v", tt.name, got, tt.samePID)
		}
		if got := k.digest(tt.name) == digests[tt.name]; got != tt.sameDigest {
			t.Errorf("%s: the same digest: %v, want %v", tt.name, got, tt.sameDigest)
		}
		if got := len(k.names(tt.name)); got != tt.tools {
			t.Errorf("%s: %d tools, want %d", tt.name, got, tt.tools)
		}
	}
	if got := k.names("goes"); len(got) > 0 {
		t.Errorf("the tools %v of the plugin that went are published", got)
	}
	_, err = k.call(t, "goes", "echo", `{}`)
	wantUnavailable(t, err, `there is no plugin "goes"`, false)
	if err := k.Restart(t.Context(), "goes"); err == nil {
		t.Error("Restart of a plugin that went succeeded")
	}
	<-went.gone
	for _, name := range []string{"goes", "limited", "confined", "set", "upgraded"} {
		pid, err := strconv.Atoi(pids[name])
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the old process of "+name+" is gone", func() bool { return gone(pid) })
	}
	if s := k.state(t, "limited"); s.Limits.OpenFiles != limited.Limits.OpenFiles || s.Crashes != 0 || s.Phase != Ready {
		t.Errorf("state is %+v, want the new limits, ready and no crash", s)
	}
}

// TestPluginThatDoesNotRunIsNotStarted makes reloads that need no start, because what is known
// suffices.
func TestPluginThatDoesNotRunIsNotStarted(t *testing.T) {
	stateDir := t.TempDir()
	p := configured(t, "calm", `{}`)
	first := keepIn(t, stateDir, p)
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	k := keepIn(t, stateDir, p)
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs := func() bool { return k.state(t, "calm").PID != 0 }
	p.Limits.OpenFiles++
	k.change(t, p)
	if runs() {
		t.Error("other limits started it")
	}
	k.change(t)
	k.change(t, p)
	if runs() || len(k.names("calm")) != len(testTools) {
		t.Errorf("it runs: %v, %d tools after it went and came again", runs(), len(k.names("calm")))
	}
	k.change(t, p.with(`{"list":"more"}`))
	if !runs() || len(k.names("calm")) != len(testTools)+1 {
		t.Errorf("it runs: %v, %d tools after other settings, want it started for them", runs(), len(k.names("calm")))
	}
	p = p.with(`{"list":"more"}`)
	p.Eager = true
	k.change(t, p)
	if !runs() {
		t.Error("it does not run although it is eager now")
	}
}

// TestFunctionsAreAdopted checks that errors of a plugin that keeps running name places in the
// new configuration.
func TestFunctionsAreAdopted(t *testing.T) {
	settings := `{"color":"wrong"}`
	p := configured(t, "calm", settings)
	p.Locate = func([]string) string { return "config.hcl:7" }
	k := keepPlugins(t, p)
	_ = k.Start(t.Context()) // reports the mistake
	p.Locate = func([]string) string { return "config.hcl:9" }
	k.change(t, p)
	if err := k.Restart(t.Context(), "calm"); err == nil || !strings.Contains(err.Error(), "config.hcl:9: it is wrong") {
		t.Errorf("Restart() = %v, want the place in the new configuration", err)
	}
}

func TestDiscard(t *testing.T) {
	p := configured(t, "calm", `{}`)
	k := keepPlugins(t, p)
	pid, digest := k.mustCall(t, "calm", "pid"), k.digest("calm")
	leftovers := k.leftovers(t)
	c, err := k.Prepare(t.Context(), []Plugin{p.with(`{"list":"more"}`), configured(t, "connected", `{}`)})
	if err != nil {
		t.Fatal(err)
	}
	if k.leftovers(t) == leftovers {
		t.Error("Prepare() started nothing")
	}
	c.Discard()
	c.Discard()
	c.Commit()
	eventually(t, "nothing is left of what was started", func() bool { return k.leftovers(t) == leftovers })
	if got := k.mustCall(t, "calm", "pid"); got != pid || k.digest("calm") != digest || len(k.Plugins()) != 1 {
		t.Errorf("process %s takes calls, plugins %v; want all as before", got, k.Plugins())
	}
}

// TestOneChangeAtATime also ends a Prepare by its context, in each of its waits.
func TestOneChangeAtATime(t *testing.T) {
	p := configured(t, "calm", `{}`)
	k := keepPlugins(t, p)
	first, err := k.Prepare(t.Context(), []Plugin{p})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Prepare(ended, []Plugin{p}); !errors.Is(err, context.Canceled) {
		t.Errorf("Prepare() = %v beside another change, want that its context has ended", err)
	}
	second := make(chan error, 1)
	go func() { // ends with the second change
		c, err := k.Prepare(t.Context(), []Plugin{p})
		if err == nil {
			c.Commit()
		}
		second <- err
	}()
	first.Commit()
	if err := <-second; err != nil {
		t.Errorf("Prepare() = %v once the first change was over", err)
	}

	// While a start hangs.
	hanging, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := k.Prepare(hanging, []Plugin{p, configured(t, "silent", `{}`)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Prepare() = %v, want that its context has ended", err)
	}

	// While an old process still has a call.
	file := filepath.Join(k.workspace, "go on")
	call := k.inside(t, "calm", file)
	k.change(t, p.with(`{"n":1}`))
	k.change(t, p.with(`{"n":1}`), configured(t, "connected", `{}`)) // which concerns others
	draining, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := k.Prepare(draining, []Plugin{p.with(`{"n":2}`)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Prepare() = %v, want that it waits for the old process", err)
	}
	if _, err := k.Prepare(draining, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Prepare() = %v of no plugins, want that it waits for the old process", err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-call; err != nil {
		t.Errorf("the call under way: %v", err)
	}
	k.change(t, p.with(`{"n":2}`))
}

func TestPrepareRefusesNames(t *testing.T) {
	k := keep(t, "calm")
	for _, names := range [][]string{{"../x"}, {"a", "a"}} {
		var plugins []Plugin
		for _, name := range names {
			plugins = append(plugins, Plugin{Name: name})
		}
		if _, err := k.Prepare(t.Context(), plugins); err == nil {
			t.Errorf("Prepare(%v) succeeded", names)
		}
	}
}

// TestCloseEndsChanges closes a Supervisor in each state of a reload. The cleanup checks that
// nothing is left.
func TestCloseEndsChanges(t *testing.T) {
	t.Parallel()
	closeNow := func(t *testing.T, k *kept) {
		t.Helper()
		if err := k.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	}
	t.Run("prepared", func(t *testing.T) {
		p := configured(t, "calm", `{}`)
		k := keepPlugins(t, p)
		c, err := k.Prepare(t.Context(), []Plugin{p.with(`{"n":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		closeNow(t, k)
		c.Commit()
		if _, err := k.call(t, "calm", "echo", `{}`); err == nil {
			t.Error("Run() after Close and Commit succeeded")
		}
		if _, err := k.Prepare(t.Context(), []Plugin{p.with(`{"n":2}`)}); !errors.Is(err, errClosed) {
			t.Errorf("Prepare() after Close = %v, want that", err)
		}
	})
	t.Run("preparing", func(t *testing.T) {
		k := keepPlugins(t)
		failed := make(chan error, 1)
		silent := configured(t, "silent", `{}`)
		go func() { // ends with Prepare
			_, err := k.Prepare(t.Context(), []Plugin{silent})
			failed <- err
		}()
		eventually(t, "the plugin starts", func() bool { return k.leftovers(t) > 0 })
		closeNow(t, k)
		if err := <-failed; err == nil {
			t.Error("Prepare() under Close succeeded")
		}
	})
	t.Run("draining", func(t *testing.T) {
		p := configured(t, "calm", `{}`)
		k := keepPlugins(t, p)
		call := k.inside(t, "calm", filepath.Join(k.workspace, "never"))
		k.change(t)
		closeNow(t, k) // and not after the time for draining
		if err := <-call; err == nil {
			t.Error("the call under way succeeded")
		}
	})
	t.Run("discarded", func(t *testing.T) {
		k := keepPlugins(t)
		c, err := k.Prepare(t.Context(), []Plugin{configured(t, "stubborn", `{}`)})
		if err != nil {
			t.Fatal(err)
		}
		c.Discard()
		closeNow(t, k)
	})
}
