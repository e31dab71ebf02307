package supervisor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/sandbox"
)

// TestReplacedFilesStayProtected replaces what a plugin must not change, as an
// editor does that saves a file: what the kernel keeps the plugin's process from is
// the file that was there before.
func TestReplacedFilesStayProtected(t *testing.T) {
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
			k.timing.look = 0
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
	k.timing.look = 0
	k.mustCall(t, "calm", "echo")
	write(t, path, "")
	k.wantClosed(t, path)
}

// TestExposedProcessEndsWithoutCalls: the plugin does not get until the next call
// to use what it has been given.
func TestExposedProcessEndsWithoutCalls(t *testing.T) {
	k, path := guarding(t, true)
	k.timing.patrol = 10 * time.Millisecond
	k.mustCall(t, "calm", "echo")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	k.await(t, "calm", Stopped)
}

// guarding keeps a plugin that may write the workspace, all but a file there, and
// returns the file's path.
func guarding(t *testing.T, exists bool) (*kept, string) {
	t.Helper()
	c := sandbox.Confinement{Isolation: sandbox.Isolated, Workspace: sandbox.WriteWorkspace, Protect: []string{"settings/config"}}
	k := keepPlugins(t, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: c, Limits: sandbox.DefaultLimits()})
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
