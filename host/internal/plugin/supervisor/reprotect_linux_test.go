package supervisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

// inRepository keeps a plugin that may write the workspace, in which there is a git
// repository, and returns the path of the repository's configuration.
func inRepository(t *testing.T) (*kept, string) {
	t.Helper()
	c := sandbox.Confinement{Isolation: sandbox.Isolated, Workspace: sandbox.WriteWorkspace, Presets: protect.Presets()}
	k := keepPlugins(t, Plugin{Name: "calm", Path: program(t, "calm"), Confinement: c, Limits: sandbox.DefaultLimits()})
	k.git(t, "init", "--quiet")
	return k, filepath.Join(k.workspace, ".git", "config")
}

// git runs git in the workspace, like a person who works next to the host.
func (k *kept) git(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", k.workspace}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// wantKept checks that the plugin's process has not been replaced and can change none of the
// files.
func (k *kept) wantKept(t *testing.T, pid int, paths ...string) {
	t.Helper()
	for _, path := range paths {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		said, err := k.call(t, "calm", "append", path)
		if err != nil {
			t.Fatal(err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("%s holds %q, %v after the call said %q; want it unchanged", path, after, err, said.Text())
		}
	}
	if now := k.state(t, "calm").PID; now != pid {
		t.Errorf("process %d takes calls, want %d: what it had under way is lost", now, pid)
	}
}

// TestGitConfigChangesUnderAProcess changes a repository's configuration from outside while a
// call runs. The process continues, and the protection covers the new file as it did the old
// one.
func TestGitConfigChangesUnderAProcess(t *testing.T) {
	t.Parallel()
	k, config := inRepository(t)
	k.git(t, "remote", "add", "origin", "https://example.org/a.git")
	file := filepath.Join(k.workspace, "go on")
	ended := k.inside(t, "calm", file)
	pid := k.state(t, "calm").PID
	for _, change := range [][]string{
		{"config", "user.name", "Somebody"}, {"remote", "set-url", "origin", "https://example.org/b.git"}, {"config", "--unset", "user.name"},
	} {
		k.git(t, change...)
		k.wantKept(t, pid, config)
	}
	write(t, file, "")
	if err := <-ended; err != nil {
		t.Errorf("the call under way: %v, want success", err)
	}
	if s := k.state(t, "calm"); s.Crashes != 0 || s.Phase != Ready {
		t.Errorf("state is %+v, want a plugin that is ready", s)
	}
}

// TestStormOfGitConfigChanges changes a repository's configuration again and again while
// the plugin is called: no change ends its process, and the last file is held.
func TestStormOfGitConfigChanges(t *testing.T) {
	t.Parallel()
	k, config := inRepository(t)
	k.mustCall(t, "calm", "echo")
	pid := k.state(t, "calm").PID
	for _, storm := range []struct {
		name   string
		rounds int
		change func(round int) error
	}{
		{"git", soak.Rounds(30, 300), func(round int) error {
			return exec.CommandContext(t.Context(), "git", "-C", k.workspace, "remote", "add", "r"+strconv.Itoa(round), "https://example.org/a.git").Run()
		}},
		{"renames", soak.Rounds(3_000, 50_000), func(int) error {
			if err := os.WriteFile(config+".new", nil, 0o644); err != nil {
				return err
			}
			return os.Rename(config+".new", config)
		}},
	} {
		over := make(chan error, 1)
		go func() { // ends after its rounds
			var err error
			for round := 0; round < storm.rounds && err == nil; round++ {
				err = storm.change(round)
			}
			over <- err
		}()
		for under := true; under; {
			select {
			case err := <-over:
				if err != nil {
					t.Fatalf("%s: %v", storm.name, err)
				}
				under = false
			default:
				k.mustCall(t, "calm", "echo")
			}
		}
		k.wantKept(t, pid, config)
	}
}

// TestGitConfigIsHeldWithoutCalls: a job of the plugin may run while nothing is called.
func TestGitConfigIsHeldWithoutCalls(t *testing.T) {
	t.Parallel()
	k, _ := inRepository(t)
	k.timing.patrol = 10 * time.Millisecond
	k.mustCall(t, "calm", "echo")
	proc := k.live("calm").proc.Sandboxed()
	k.git(t, "config", "user.name", "Somebody")
	k.log.await(t, "cannot change the new ones")
	if exposed := proc.Exposed(); len(exposed) > 0 {
		t.Errorf("the process can change %v", exposed)
	}
}

// TestProtectedFilesComeAndGo makes, replaces and removes files and directories that
// are protected by their names.
func TestProtectedFilesComeAndGo(t *testing.T) {
	t.Parallel()
	k, _ := inRepository(t)
	k.mustCall(t, "calm", "echo")
	pid := k.state(t, "calm").PID
	envrc, tasks := filepath.Join(k.workspace, ".envrc"), filepath.Join(k.workspace, ".vscode", "tasks.json")
	hook := filepath.Join(k.workspace, ".git", "hooks", "pre-commit")
	write(t, envrc, "a")
	k.wantKept(t, pid, envrc)
	if err := os.Remove(envrc); err != nil {
		t.Fatal(err)
	}
	write(t, tasks, "{}")
	k.wantKept(t, pid, tasks)
	if err := os.RemoveAll(filepath.Dir(hook)); err != nil {
		t.Fatal(err)
	}
	write(t, hook, "#!/bin/sh")
	write(t, envrc, "b")
	k.wantKept(t, pid, hook, envrc, tasks)
}

// TestNotHeldAgain: if a new file cannot be protected from the running process, another process
// replaces it. A call that the old process does not finish reports the reason.
func TestNotHeldAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		replace func(k *kept, config string) error
	}{
		{"a link", func(_ *kept, config string) error {
			return os.Symlink("HEAD", config)
		}},
		{"a file with another name", func(k *kept, config string) error {
			other := filepath.Join(k.workspace, "other")
			write(t, other, "")
			return os.Link(other, config)
		}},
		{"a file in another directory", func(_ *kept, config string) error {
			if err := os.Rename(filepath.Dir(config), filepath.Dir(config)+".old"); err != nil {
				return err
			}
			write(t, config, "")
			return nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k, config := inRepository(t)
			k.timing.drain = time.Millisecond
			ended := k.inside(t, "calm", filepath.Join(k.workspace, "never"))
			pid := k.state(t, "calm").PID
			if err := os.Remove(config); err != nil {
				t.Fatal(err)
			}
			if err := tt.replace(k, config); err != nil {
				t.Fatal(err)
			}
			k.mustCall(t, "calm", "echo")
			if now := k.state(t, "calm").PID; now == pid {
				t.Error("the same process takes calls")
			}
			e := tool.AsError(<-ended)
			if want := "protected files were replaced or created while it ran: .git/config"; e == nil || e.Code != tool.PluginCrashed || !strings.Contains(e.Message, want) {
				t.Errorf("the call under way: %v, want %q in it", e, want)
			}
		})
	}
}

// TestLinkToNothingIsHeld: a protected name may be a dangling link. The plugin cannot replace
// it, and its process does not count as exposed.
func TestLinkToNothingIsHeld(t *testing.T) {
	t.Parallel()
	k, _ := inRepository(t)
	link := filepath.Join(k.workspace, ".envrc")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	k.mustCall(t, "calm", "echo")
	pid := k.state(t, "calm").PID
	k.mustCall(t, "calm", "echo")
	if now := k.state(t, "calm").PID; now != pid {
		t.Errorf("process %d takes calls after %d, although nothing has changed", now, pid)
	}
}

// TestTooLargeWorkspaceIsLogged: if the search for protected files was incomplete, the log says
// so when the plugin starts.
func TestTooLargeWorkspaceIsLogged(t *testing.T) {
	t.Parallel()
	k, _ := inRepository(t)
	const moreThanAreMounted = 501
	for i := range moreThanAreMounted {
		write(t, filepath.Join(k.workspace, "many", strconv.Itoa(i), ".envrc"), "")
	}
	k.mustCall(t, "calm", "echo")
	k.log.await(t, "the kernel does not protect all files that are protected or forbidden by name")
}
