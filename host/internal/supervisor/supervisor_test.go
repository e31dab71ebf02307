package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestMain(m *testing.M) {
	sandbox.Reexec()
	if isTestPlugin() {
		runTestPlugin()
		return
	}
	goleak.VerifyTestMain(m)
}

// kept is a Supervisor over test plugins, and what it said.
type kept struct {
	*Supervisor
	log *syncBuffer

	mu        sync.Mutex // guards published
	published map[string][]tool.Spec
}

// keep makes a Supervisor for plugins with the given behaviours, which are
// their names too.
func keep(t *testing.T, modes ...string) *kept {
	t.Helper()
	var plugins []Plugin
	for _, mode := range modes {
		plugins = append(plugins, Plugin{Name: mode, Path: program(t, mode), Limits: sandbox.DefaultLimits()})
	}
	return keepPlugins(t, plugins...)
}

func keepPlugins(t *testing.T, plugins ...Plugin) *kept {
	t.Helper()
	return keepIn(t, t.TempDir(), plugins...)
}

func keepIn(t *testing.T, stateDir string, plugins ...Plugin) *kept {
	t.Helper()
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		t.Fatal(err)
	}
	runDir, err := os.MkdirTemp("/tmp", "th") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{log: new(syncBuffer), published: map[string][]tool.Spec{}}
	s, err := New(Options{
		Plugins: plugins, Launcher: launcher, StateDir: stateDir, RunDir: runDir, Workspace: t.TempDir(), Version: "0.1.0",
		Logger: hclog.New(&hclog.LoggerOptions{Output: k.log, Level: hclog.Debug}),
		Publish: func(plugin string, tools []tool.Spec) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.published[plugin] = tools
		},
	})
	if err != nil {
		t.Fatal(err)
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
		os.RemoveAll(runDir)
		if t.Failed() {
			t.Logf("log:\n%s", k.log)
		}
	})
	return k
}

// program makes this test binary available under another name.
func program(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(ownedDir(t), name)
	info, err := os.Stat(self)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm()&0o022 == 0 && os.Link(self, path) == nil {
		return path
	}
	return copyProgram(t, name)
}

// ownedDir is a directory that only its owner can write, whatever the umask.
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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(ownedDir(t), name)
	in, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(out.Close(), os.Chmod(path, 0o755)); err != nil {
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
	return k.Run(ctx, plugin, tool.Call{ID: "tc_1", Tool: name, Arguments: []byte(arguments)}, tool.Sink{})
}

// mustCall runs a tool that works, and waits out backoffs before.
func (k *kept) mustCall(t *testing.T, plugin, name string) string {
	t.Helper()
	for {
		result, err := k.call(t, plugin, name, `{}`)
		var e *tool.Error
		if errors.As(err, &e) && e.Code == tool.Unavailable && e.Retryable {
			<-time.After(e.RetryAfter)
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

func TestRun(t *testing.T) {
	k := keep(t, "calm")
	var progress []tool.Progress
	var chunks []tool.Chunk
	result, err := k.Run(t.Context(), "calm", tool.Call{ID: "tc_1", Tool: "echo", Arguments: []byte(`{"a":1}`), Context: tool.Context{User: "../ann"}}, tool.Sink{
		Progress: func(p tool.Progress) { progress = append(progress, p) },
		Chunk:    func(c tool.Chunk) { chunks = append(chunks, c) },
	})
	if err != nil {
		t.Fatalf("Run() = %v (%v)", err, errors.Unwrap(err))
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
	if s.Phase != Ready || s.PID <= 1 || s.Version != "1.2.3" || len(s.Digest) != 64 || s.Calls != 0 || !strings.Contains(s.Sandbox, "rlimits") {
		t.Errorf("state is %+v", s)
	}
}
