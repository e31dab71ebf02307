package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Parts of a repository that are elsewhere are refused, and their content is never shown. The
// control is git, which reads them.
func TestOutsideOfTheWorkspace(t *testing.T) {
	for name, setup := range map[string]func(w *workspace, secret string){
		"git directory": func(w *workspace, secret string) {
			w.git("", "init", "-q", "r")
			w.remove("r/.git")
			w.write(map[string]string{"r/.git": "gitdir: " + secret + "/.git\n"})
		},
		"link to it": func(w *workspace, secret string) {
			w.git("", "init", "-q", "r")
			w.remove("r/.git")
			w.link(secret+"/.git", "r/.git")
		},
		"linked worktree": func(w *workspace, secret string) {
			w.git("", "-C", secret, "worktree", "add", "-q", filepath.Join(w.dir, "r"))
		},
		"common directory": func(w *workspace, secret string) {
			w.git("", "init", "-q", "r")
			w.write(map[string]string{"r/.git/commondir": secret + "/.git\n", "r/.git/HEAD": "ref: refs/heads/main\n"})
		},
		"objects": func(w *workspace, secret string) {
			w.git("", "init", "-q", "-b", "main", "r")
			w.remove("r/.git/objects")
			w.link(secret+"/.git/objects", "r/.git/objects")
			w.git("r", "update-ref", "refs/heads/main", w.git("", "-C", secret, "rev-parse", "HEAD"))
		},
		"alternates": func(w *workspace, secret string) {
			w.git("", "init", "-q", "-b", "main", "r")
			w.write(map[string]string{"r/.git/objects/info/alternates": "# a comment\n" + secret + "/.git/objects\n"})
			w.git("r", "update-ref", "refs/heads/main", w.git("", "-C", secret, "rev-parse", "HEAD"))
		},
		"alternates of alternates": func(w *workspace, secret string) {
			w.git("", "init", "-q", "-b", "main", "r")
			w.git("", "init", "-q", "-b", "main", "other")
			w.write(map[string]string{"r/.git/objects/info/alternates": w.dir + "/other/.git/objects\n", "other/.git/objects/info/alternates": secret + "/.git/objects\n"})
			w.git("r", "update-ref", "refs/heads/main", w.git("", "-C", secret, "rev-parse", "HEAD"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			secret := filepath.Join(filepath.Dir(w.dir), "secret")
			w.git("", "init", "-q", "-b", "main", secret)
			if err := os.WriteFile(filepath.Join(secret, "s.txt"), []byte("the secret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.git("", "-C", secret, "add", "-A")
			w.git("", "-C", secret, "commit", "-qm", "secret")
			setup(w, secret)
			contains(t, w.git("r", "show", "HEAD"), "the secret")
			for _, name := range []string{"git_status", "git_log", "git_show", "git_diff"} {
				text := w.refused(name, args{"path": "r"}, tool.PermissionDenied)
				contains(t, text, "outside the workspace")
				if strings.Contains(text, "secret") {
					t.Errorf("%s tells where it leads: %s", name, text)
				}
			}
		})
	}
}

// The rules alone also prevent reading files elsewhere.
func TestRulesKeepFilesOut(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	outside := filepath.Join(filepath.Dir(w.dir), "outside")
	if err := os.WriteFile(outside, []byte("[user]\n\tname = Secret\n\temail = s@x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.git("r", "config", "--unset", "user.name")
	w.git("r", "config", "include.path", outside)
	w.write(map[string]string{"r/a.txt": "x\n"})
	in := args{"message": "x", "files": []string{"r/a.txt"}}
	contains(t, w.refused("git_commit", in, tool.PermissionDenied), "its configuration includes a file outside the repository")
	w.start(started{layers: layers{noRules: true}})
	w.must("git_commit", in)
	if got := w.git("r", "log", "-1", "--format=%an"); got != "Secret" {
		t.Errorf("without rules the name is %s: the test proves nothing", got)
	}
}

// Objects may lie in another repository of the workspace.
func TestAlternates(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("", "clone", "-q", "--shared", "r", "shared")
	contains(t, w.must("git_show", args{"path": "shared"}), "+more")
}

// Submodules and linked worktrees within the workspace are repositories like others.
func TestSubmodulesAndWorktrees(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.repo("r")
	w.repo("lib")
	w.git("r", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "sub")
	w.git("r", "commit", "-qm", "submodule")
	w.git("r", "worktree", "add", "-q", "../tree", "-b", "tree")
	w.write(map[string]string{"r/sub/a.txt": "changed\n", "tree/a.txt": "changed\n"})
	contains(t, w.must("git_status", args{"path": "r"}), "clean") // the inside of a submodule does not matter here
	contains(t, w.must("git_status", args{"path": "r/sub"}), ".M r/sub/a.txt")
	contains(t, w.must("git_status", args{"path": "tree"}), "On branch tree", ".M tree/a.txt")
	w.must("git_commit", args{"message": "in the worktree", "files": []string{"tree/a.txt"}})
	w.git("r/sub", "config", "user.name", "Ada")
	w.git("r/sub", "config", "user.email", "ada@example.com")
	w.must("git_commit", args{"message": "in the submodule", "files": []string{"r/sub/a.txt"}})
	contains(t, w.must("git_diff", args{"path": "r"}), "-Subproject commit ", "+Subproject commit ")
	if got := structured[Status](w, "git_status", args{"path": "r"}); len(got.Files) != 1 || !got.Files[0].Submodule {
		t.Errorf("git_status = %+v", got)
	}
	w.must("git_commit", args{"path": "r", "message": "submodule", "files": []string{"r/sub"}})
	contains(t, w.must("git_log", args{"path": "tree"}), "in the worktree")
	contains(t, w.refused("git_switch", args{"path": "r", "branch": "tree"}, tool.Conflict), "another worktree")
}

func TestBadRepositories(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	bad := func(name, want string, code tool.Code, setup func(dir string)) {
		t.Run(name, func(t *testing.T) {
			dir := strings.ReplaceAll(name, " ", "-")
			w.git("", "init", "-q", "-b", "main", dir)
			setup(dir)
			contains(t, w.refused("git_status", args{"path": dir}, code), want)
		})
	}
	bad("empty git file", "does not name a git directory", tool.Failed, func(dir string) {
		w.remove(dir + "/.git")
		w.write(map[string]string{dir + "/.git": "x"})
	})
	bad("gone", "does not exist", tool.Failed, func(dir string) {
		w.remove(dir + "/.git")
		w.write(map[string]string{dir + "/.git": "gitdir: nowhere"})
	})
	bad("no head", "its git directory is damaged", tool.NotFound, func(dir string) { w.remove(dir + "/.git/HEAD") })
	bad("wrong configuration", "bad config", tool.Failed, func(dir string) { w.write(map[string]string{dir + "/.git/config": "[x\n"}) })
	bad("later version", "Expected git repo version", tool.Failed, func(dir string) {
		w.write(map[string]string{dir + "/.git/config": "[core]\n\trepositoryformatversion = 9\n"})
	})
	bad("damaged index", "damaged", tool.Failed, func(dir string) { w.write(map[string]string{dir + "/.git/index": "DIRC nonsense"}) })
	bad("many filters", "too many drivers", tool.ResourceExhausted, func(dir string) {
		var b strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&b, "[filter \"f%d\"]\n\tclean = x\n", i)
		}
		w.write(map[string]string{dir + "/.git/config": b.String()})
	})
	bad("endless configuration", "too large", tool.ResourceExhausted, func(dir string) {
		w.write(map[string]string{dir + "/.git/config": strings.Repeat("[a]\n\tb = "+strings.Repeat("x", 1000)+"\n", 2000)})
	})
	bad("quoted alternate", "quoted name", tool.Failed, func(dir string) {
		w.write(map[string]string{dir + "/.git/objects/info/alternates": "\"/etc\"\n"})
	})
	bad("alternates in a circle", "too many alternate", tool.Failed, func(dir string) {
		w.write(map[string]string{dir + "/.git/objects/info/alternates": w.dir + "/" + dir + "/.git/objects\n"})
	})
	// A named pipe in place of a file is not waited for.
	for _, name := range []string{"commondir", "objects/info/alternates", "MERGE_HEAD", "shallow"} {
		t.Run("pipe "+name, func(t *testing.T) {
			dir := "pipe-" + filepath.Base(name)
			w.repo(dir)
			w.git(dir, "config", "remote.origin.url", "https://127.0.0.1:1/x")
			if err := syscall.Mkfifo(filepath.Join(w.dir, dir, ".git", name), 0o600); err != nil {
				t.Fatal(err)
			}
			in := args{"path": dir, "message": "x"}
			verb := "git_commit"
			if name == "shallow" {
				verb, in = "git_fetch", args{"path": dir}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if got := w.plugin.Call(ctx, verb, in); got.Error == nil || got.Error.Code != tool.Failed {
				t.Errorf("%s = %q, %v", verb, got.Text(), got.Error)
			}
		})
	}
	t.Run("bare", func(*testing.T) {
		w.git("", "init", "-q", "--bare", "bare.git")
		w.refused("git_status", args{"path": "bare.git"}, tool.NotFound)
	})
	t.Run("missing object", func(*testing.T) {
		w.repo("lost")
		id := w.git("lost", "rev-parse", "HEAD^{tree}")
		w.remove("lost/.git/objects/" + id[:2] + "/" + id[2:])
		w.refused("git_show", args{"path": "lost"}, tool.Failed)
	})
	t.Run("locked", func(t *testing.T) {
		w.repo("locked")
		w.write(map[string]string{"locked/.git/index.lock": "", "locked/a.txt": "x\n"})
		contains(t, w.must("git_status", args{"path": "locked"}), ".M locked/a.txt") // reads take no lock
		for name, in := range map[string]args{
			"git_add": {"files": []string{"locked"}}, "git_commit": {"message": "x", "files": []string{"locked"}}, "git_restore": {"files": []string{"locked"}},
			"git_reset": {"path": "locked"}, "git_switch": {"path": "locked", "branch": "main"}, "git_stash": {"path": "locked", "action": "push"},
			"git_pull": {"path": "locked"},
		} {
			contains(t, w.refused(name, in, tool.Conflict), "left index.lock behind")
		}
	})
	t.Run("no git", func(t *testing.T) {
		w.repo("r")
		w.start(started{settings: map[string]any{"program": "/no/such/git"}})
		contains(t, w.refused("git_status", args{"path": "r"}, tool.Unavailable), "git cannot be executed")
	})
	t.Run("no workspace", func(t *testing.T) {
		w.start(started{options: func(o *sdktest.Options) { o.Context.Roots = []string{} }})
		if got := w.call("git_status", nil); got.Error == nil || got.Error.Code != tool.Unavailable {
			t.Errorf("git_status = %v", got.Error)
		}
	})
}

// A file of the configuration that has changed is read again; an untouched one is not.
func TestConfigIsReadAgain(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.write(map[string]string{"r/a.txt": "x\n"})
	for _, who := range []string{"Bea", "Cem", "Dan"} {
		w.git("r", "config", "user.name", who)
		w.must("git_commit", args{"message": who, "files": []string{"r"}})
		if got := w.git("r", "log", "-1", "--format=%an"); got != who {
			t.Errorf("the commit is by %s, want %s", got, who)
		}
		w.write(map[string]string{"r/a.txt": who + "\n"})
	}
}

func (w *workspace) remove(name string) {
	w.Helper()
	if err := os.RemoveAll(filepath.Join(w.dir, name)); err != nil {
		w.Fatal(err)
	}
}

func (w *workspace) link(target, name string) {
	w.Helper()
	if err := os.Symlink(target, filepath.Join(w.dir, name)); err != nil {
		w.Fatal(err)
	}
}
