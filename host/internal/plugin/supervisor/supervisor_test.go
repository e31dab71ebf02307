package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestMain(m *testing.M) {
	if isTestPlugin() {
		runTestPlugin()
		return
	}
	if program := os.Getenv(hostEnv); program != "" {
		runTestHost(program)
		return
	}
	dir, err := os.MkdirTemp("", "supervisor-test-")
	must(err)
	must(os.Chmod(dir, 0o755))
	testBinary, err = pluginBinary(dir)
	must(err)
	must(programs.prepare(filepath.Join(dir, "programs")))
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		must(os.RemoveAll(dir))
		os.Exit(code)
	}))
}

// testBinary is the program that tests start as a plugin or a host.
var testBinary string

// secret is the text that [Options.Redact] removes in these tests.
const secret = "hunter2"

// plain gives plugins the test's environment, and the same process ids as the tests.
var plain = sandbox.Confinement{Isolation: sandbox.Basic, Workspace: sandbox.WriteWorkspace, Exec: []string{sandbox.ExecSystem}}

// kept is a Supervisor with test plugins, and its log.
type kept struct {
	*Supervisor
	log *syncBuffer
	// workspace is the part of the test's files that the plugins see.
	workspace string
	// publishing is called before something is published, if it is set.
	publishing func()
	// entered is called with the phases of processes and their owners, if it is set; the mu of the
	// managers guards it.
	entered func(plugin, user, session string, phase Phase)

	mu        sync.Mutex // guards the rest
	published map[string][]tool.Spec
	digests   map[string]string
	known     bool // the last tools were published as sound
	unsound   bool // what is published counts as unsound
}

// keep makes a Supervisor for plugins with the given behaviours, which are
// their names too.
func keep(t *testing.T, modes ...string) *kept {
	t.Helper()
	var plugins []Plugin
	for _, mode := range modes {
		plugins = append(plugins, Plugin{Name: mode, Path: program(t, mode), Confinement: plain, Limits: sandbox.DefaultLimits()})
	}
	return keepPlugins(t, plugins...)
}

func keepPlugins(t *testing.T, plugins ...Plugin) *kept {
	t.Helper()
	return keepIn(t, t.TempDir(), plugins...)
}

func keepIn(t *testing.T, stateDir string, plugins ...Plugin) *kept {
	t.Helper()
	return keepUnder(t, stateDir, workspace.Dirs{Shared: t.TempDir()}, plugins...)
}

func keepUnder(t *testing.T, stateDir string, dirs workspace.Dirs, plugins ...Plugin) *kept {
	t.Helper()
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		t.Fatal(err)
	}
	runDir := shortDir(t)
	k := &kept{log: new(syncBuffer), workspace: dirs.Shared, published: map[string][]tool.Spec{}, digests: map[string]string{}}
	s, err := New(Options{
		Plugins: plugins, Launcher: launcher, StateDir: stateDir, RunDir: runDir, Workspace: dirs, Version: "0.1.0",
		Logger: hclog.New(&hclog.LoggerOptions{Output: k.log, Level: hclog.Debug}),
		Redact: func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") },
		Entered: func(plugin, user, session string, _ bool, phase Phase) {
			if k.entered != nil {
				k.entered(plugin, user, session, phase)
			}
		},
		Publish: func(p Publication) bool {
			if k.publishing != nil {
				k.publishing()
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			k.published[p.Plugin], k.digests[p.Plugin], k.known = p.Tools, p.Digest, p.Sound
			return !k.unsound
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.env = []string{"GORACE=atexit_sleep_ms=0"} // a race detector would have each plugin end a second late
	for _, p := range plugins {
		programs.tell(s, p.Path)
	}
	k.Supervisor = s
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if err := launcher.Close(); err != nil {
			t.Errorf("close launcher: %v", err)
		}
		if left, _ := os.ReadDir(runDir); len(left) > 0 {
			t.Errorf("left in the run directory: %v", left)
		}
		if t.Failed() {
			t.Logf("log:\n%s", k.log)
		}
	})
	return k
}

// program returns the test binary under another name. Tests share it and must not change it.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := programs.named(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// ownedDir returns a directory that only its owner can write, whatever the umask.
func ownedDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyProgram is program for tests that change the file.
func copyProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := programs.copyTo(filepath.Join(ownedDir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// size returns the memory of the buffer.
func (b *syncBuffer) size() tool.ByteSize {
	b.mu.Lock()
	defer b.mu.Unlock()
	return tool.ByteSize(b.b.Cap())
}

// await waits until the buffer holds text.
func (b *syncBuffer) await(t *testing.T, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q is in the log", text), func() bool { return strings.Contains(b.String(), text) })
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for tick, end := time.Tick(5*time.Millisecond), time.After(60*time.Second); !holds(); {
		select {
		case <-tick:
		case <-end:
			t.Fatalf("it never came true that %s", what)
		}
	}
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// call runs a tool and gives it a generous time.
func (k *kept) call(t *testing.T, plugin, name, arguments string) (tool.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	result, _, err := k.Run(ctx, plugin, "", tool.Call{ID: "tc_1", Tool: name, Arguments: []byte(arguments)}, tool.Sink{})
	return result, err
}

// forgive ends the wait after a crash, which is random. Its crashes stay
// counted.
func (k *kept) forgive(plugin string) {
	m := k.managers[plugin].base
	m.mu.Lock()
	defer m.mu.Unlock()
	m.backoff.until = time.Time{}
}

// digest returns the digest that was last published with the tools of a plugin.
func (k *kept) digest(plugin string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.digests[plugin]
}

// live returns the process that takes calls, or nil.
func (k *kept) live(plugin string) *instance {
	m := k.managers[plugin].base
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current()
}

// mustCall runs a tool that works, without the waits after crashes.
func (k *kept) mustCall(t *testing.T, plugin, name string) string {
	t.Helper()
	for {
		result, err := k.call(t, plugin, name, `{}`)
		var e *tool.Error
		if errors.As(err, &e) && e.Code == tool.Unavailable && e.Retryable {
			k.forgive(plugin)
			continue
		}
		if err != nil {
			t.Fatalf("Run(%s, %s) = %v (%v)", plugin, name, err, errors.Unwrap(err))
		}
		return result.Text()
	}
}

// state returns the state of one plugin.
func (k *kept) state(t *testing.T, plugin string) State {
	t.Helper()
	for _, s := range k.Plugins() {
		if s.Name == plugin {
			return s
		}
	}
	t.Fatalf("Plugins() does not list %q", plugin)
	return State{}
}

// await waits until a plugin is in a phase.
func (k *kept) await(t *testing.T, plugin string, phase Phase) {
	t.Helper()
	eventually(t, plugin+" is "+phase.String(), func() bool { return k.state(t, plugin).Phase == phase })
}

func TestRun(t *testing.T) {
	k := keep(t, "calm")
	var progress []tool.Progress
	var chunks []tool.Chunk
	result, sent, err := k.Run(t.Context(), "calm", "", tool.Call{ID: "tc_1", Tool: "echo", Arguments: []byte(`{"a":1}`), Context: tool.Context{User: "../ann"}}, tool.Sink{
		Progress: func(p tool.Progress) { progress = append(progress, p) },
		Chunk:    func(c tool.Chunk) { chunks = append(chunks, c) },
	})
	if err != nil || !sent {
		t.Fatalf("Run() = sent %v, %v (%v)", sent, err, errors.Unwrap(err))
	}
	if got, want := result.Text(), `{"a":1}`; got != want {
		t.Errorf("the result is %q, want %q", got, want)
	}
	if got, want := fmt.Sprint(progress), "[{1 2 half}]"; got != want {
		t.Errorf("progress is %s, want %s", got, want)
	}
	if len(chunks) != 1 || string(chunks[0].Data) != "chunk" || chunks[0].Stream != tool.Stdout {
		t.Errorf("chunks are %v, want one", chunks)
	}
	s := k.state(t, "calm")
	if s.Phase != Ready || s.PID <= 1 || s.Version != "1.2.3" || len(s.Digest) != 64 || s.Calls != 0 || s.Sandbox == nil || !slices.Contains(s.Sandbox.Layers, "rlimits") {
		t.Errorf("state is %+v", s)
	}
}

func TestStart(t *testing.T) {
	k := keep(t, "calm", "crashstart", "connected", "liar", "usage")
	if err := k.Start(t.Context()); err != nil {
		t.Fatalf("Start() = %v", err)
	}
	for plugin, want := range map[string]int{"calm": len(testTools), "connected": len(testTools), "crashstart": 0, "liar": 0, "usage": 0} {
		if got := len(k.names(plugin)); got != want {
			t.Errorf("%s: %d tools are published, want %d", plugin, got, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Start() after ctx has ended = %v, want that", err)
	}
}

func TestEagerPluginStartsAgain(t *testing.T) {
	k := keepPlugins(t, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Eager: true, IdleTimeout: time.Millisecond})
	if err := k.Start(t.Context()); err != nil {
		t.Fatalf("Start() = %v", err)
	}
	first := k.state(t, "calm")
	if first.Phase != Ready {
		t.Fatalf("state is %v after Start, want ready", first.Phase)
	}
	if _, err := k.call(t, "calm", "exit", `{}`); tool.AsError(err).Code != tool.PluginCrashed {
		t.Fatalf("Run() = %v", err)
	}
	eventually(t, "the plugin is started again", func() bool {
		s := k.state(t, "calm")
		return s.Phase == Ready && s.PID != first.PID
	})
}

func TestCloseDuringAStart(t *testing.T) {
	k := keep(t, "silent", "hangconfigure")
	var calls sync.WaitGroup
	for _, plugin := range []string{"silent", "hangconfigure"} {
		calls.Go(func() {
			_, err := k.call(t, plugin, "echo", `{}`)
			wantUnavailable(t, err, "the host is stopping", false)
		})
		eventually(t, "the plugin starts", func() bool { return k.state(t, plugin).Phase != Stopped })
	}
	for range 2 {
		if err := k.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	}
	calls.Wait()
	_, err := k.call(t, "silent", "echo", `{}`)
	wantUnavailable(t, err, "the host is stopping", false)
	for _, s := range k.Plugins() {
		if s.Phase != Stopped || s.PID != 0 {
			t.Errorf("state after Close is %+v", s)
		}
	}
}

func TestCloseEndsCalls(t *testing.T) {
	t.Parallel()
	k := keep(t, "stubborn")
	inside := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		_, _, err := k.Run(t.Context(), "stubborn", "", tool.Call{ID: "tc_1", Tool: "block", Arguments: []byte(`{"Calls":1}`)},
			tool.Sink{Chunk: func(tool.Chunk) { close(inside) }})
		ended <- err
	}()
	<-inside
	pid := k.state(t, "stubborn").PID
	if err := k.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if err := <-ended; tool.AsError(err).Code != tool.PluginCrashed || !strings.Contains(err.Error(), "was stopped by the host") {
		t.Errorf("Run() = %v, want that the plugin was stopped", err)
	}
	if !gone(pid) {
		t.Errorf("process %d still runs", pid)
	}
}

// TestNothingLeaks also relies on TestMain, which looks for goroutines.
func TestNothingLeaks(t *testing.T) {
	k := keep(t, "calm", "crashdescribe", "noisy")
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	cycle := func() {
		for _, m := range k.managers { // no backoff, no breaker, no memory of refusals
			m.mu.Lock()
			m.base.backoff, m.base.refused = restarts{}, nil
			m.mu.Unlock()
			if _, err := k.call(t, m.plugin.Name, "exit", `{}`); err == nil {
				t.Fatal("Run() = nil, want a crash")
			}
		}
	}
	settle := func() { // the cleanup of the last processes may still run
		eventually(t, "nothing is left over", func() bool { return k.leftovers(t) == 0 })
	}
	cycle()
	settle()
	before, goroutines := descriptors(), runtime.NumGoroutine()
	cycles := soak.Rounds(8, 100)
	for range cycles {
		cycle()
	}
	settle()
	if after := descriptors(); after > before+2 {
		t.Errorf("%d descriptors after %d crashes of each, %d before", after, cycles, before)
	}
	if after := runtime.NumGoroutine(); after > goroutines+4 {
		t.Errorf("%d goroutines after %d crashes of each, %d before", after, cycles, goroutines)
	}
}

// leftovers counts the directories of processes in the run directory.
func (k *kept) leftovers(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(k.run.Path)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries) - 1 // the lock
}

func TestNewRefuses(t *testing.T) {
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		t.Fatal(err)
	}
	defer launcher.Close()
	for _, tt := range []struct {
		name string
		opts Options
		want string
	}{
		{"no launcher", Options{StateDir: "/x"}, "Options.Launcher is required"},
		{"no state", Options{Launcher: launcher}, `Options.StateDir is "", expected an absolute path`},
		{"a bad name", Options{Launcher: launcher, StateDir: t.TempDir(), Plugins: []Plugin{{Name: "../x"}}}, `plugin "../x": not a name`},
		{"a name twice", Options{Launcher: launcher, StateDir: t.TempDir(), Plugins: []Plugin{{Name: "a"}, {Name: "a"}}}, `plugin "a": two plugins have this name`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New() = %v, want %q", err, tt.want)
			}
		})
	}
}
