package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// TestReplacedFilesStayProtected replaces protected files like an editor that saves: the kernel
// protects only the previous file from the plugin's process.
func TestReplacedFilesStayProtected(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		replace func(t *testing.T, path string)
	}{
		{"saved by renaming", func(t *testing.T, path string) {
			t.Helper()
			write(t, path+".new", "")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}},
		// The new file often has the number of the one before.
		{"removed and made again", func(t *testing.T, path string) {
			t.Helper()
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			write(t, path, "")
		}},
		// It is the same file, and nothing is mounted on it any more.
		{"removed and put back", func(t *testing.T, path string) {
			t.Helper()
			for _, err := range []error{os.Link(path, path+".kept"), os.Remove(path), os.Rename(path+".kept", path)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"its directory moved away", func(t *testing.T, path string) {
			t.Helper()
			dir := filepath.Dir(path)
			if err := os.Rename(dir, dir+".old"); err != nil {
				t.Fatal(err)
			}
			write(t, path, "")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, path := guarding(t, true)
			k.wantClosed(t, path)
			first := k.state(t, "calm").PID
			tt.replace(t, path)
			k.wantClosed(t, path)
			second := k.state(t, "calm").PID
			if second == first {
				t.Error("the same process takes calls after the file was replaced")
			}
			k.wantClosed(t, path)
			if third := k.state(t, "calm").PID; third != second {
				t.Error("another process takes calls although nothing was replaced")
			}
		})
	}
}

func TestNewFilesAreProtected(t *testing.T) {
	k, path := guarding(t, false)
	k.mustCall(t, "calm", "echo")
	write(t, path, "")
	k.wantClosed(t, path)
}

// TestExposedProcessEndsWithoutCalls: a plugin cannot use its exposed files until the next call.
func TestExposedProcessEndsWithoutCalls(t *testing.T) {
	k, path := guarding(t, true)
	k.timing.patrol = 10 * time.Millisecond
	k.mustCall(t, "calm", "echo")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	k.await(t, "calm", Stopped)
}

// TestExposedEagerProcessIsReplaced: a plugin that always runs is restarted at once, with no
// more processes than for any other reason.
func TestExposedEagerProcessIsReplaced(t *testing.T) {
	k, path := guarding(t, true, func(p *Plugin) { p.Eager = true })
	k.timing.patrol = 10 * time.Millisecond
	k.mustCall(t, "calm", "echo")
	first := k.state(t, "calm").PID
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another process runs", func() bool {
		s := k.state(t, "calm")
		return s.Phase == Ready && s.PID != first
	})
}

// TestExposedProcessFinishesItsCalls: the calls of a replaced process have a limited time to
// finish.
func TestExposedProcessFinishesItsCalls(t *testing.T) {
	k, path := guarding(t, true)
	k.timing.patrol, k.timing.drain = 10*time.Millisecond, 100*time.Millisecond
	failed := make(chan error, 1)
	go func() { // ends with the call, which never ends by itself
		_, err := k.call(t, "calm", "wait_file", filepath.Join(k.workspace, "never"))
		failed <- err
	}()
	eventually(t, "the call is under way", func() bool { return k.state(t, "calm").Calls == 1 })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("a call of a process that was replaced never ended, and was no error")
	}
	k.log.await(t, "although it has calls: another process has replaced it")
}

// guarding keeps a plugin that may write the workspace, all but a file there, and
// returns the file's path.
func guarding(t *testing.T, exists bool, change ...func(*Plugin)) (*kept, string) {
	t.Helper()
	c := sandbox.Confinement{Isolation: sandbox.Isolated, Workspace: sandbox.WriteWorkspace, Protect: []string{"settings/config"}}
	p := Plugin{Name: "calm", Path: program(t, "calm"), Confinement: c, Limits: sandbox.DefaultLimits()}
	for _, f := range change {
		f(&p)
	}
	k := keepPlugins(t, p)
	path := filepath.Join(k.workspace, "settings", "config")
	if exists {
		write(t, path, "")
	}
	return k, path
}

// wantClosed checks that the plugin cannot change the file.
func (k *kept) wantClosed(t *testing.T, path string) {
	t.Helper()
	said, err := k.call(t, "calm", "append", path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || len(text) > 0 {
		t.Errorf("%s holds %q, %v after the call said %q", path, text, err, said)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSuspects checks that a file placed where a running plugin can change it counts as possibly
// written by the plugin, until a person has checked or replaced it.
func TestSuspects(t *testing.T) {
	k, path := guarding(t, true)
	k.timing.patrol = time.Hour
	want := func(what string, plugins ...string) {
		t.Helper()
		got := k.Suspects()
		if len(got) != len(plugins) || len(plugins) > 0 && got[path] != plugins[0] {
			t.Errorf("%s: suspects %v, want the file by %q", what, got, plugins)
		}
	}
	replace := func() {
		t.Helper()
		write(t, path+".new", "")
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	replace()
	want("before the plugin runs")
	k.mustCall(t, "calm", "echo")
	write(t, path, "more")
	want("written in place")
	replace()
	want("replaced", "calm")
	k.Trust([]string{path})
	want("looked at, while the plugin can still change it", "calm")
	if err := k.Restart(t.Context(), "calm"); err != nil {
		t.Fatal(err)
	}
	want("the process is another one", "calm")
	k.Trust([]string{path})
	want("looked at")
	write(t, path, "")
	want("written in place again")
}

// TestSuspectsOfALook checks that a replaced file is a suspect as soon as a look has protected it:
// then nothing else shows that the plugin could change it.
func TestSuspectsOfALook(t *testing.T) {
	k, path := guarding(t, true)
	k.timing.patrol = time.Hour
	protected := false
	k.exposed = func(p *sandbox.Process) []string {
		if protected {
			return nil
		}
		return p.Exposed()
	}
	var got map[string]string
	k.reprotect = func(*sandbox.Process, context.Context, []string) []string { // where the kernel allows it
		protected = true
		got = k.Suspects()
		return nil
	}
	k.mustCall(t, "calm", "echo")
	write(t, path+".new", "")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	k.mustCall(t, "calm", "echo")
	if got[path] != "calm" {
		t.Errorf("suspects %v, want %s by calm", got, path)
	}
}
