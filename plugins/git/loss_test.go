package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// A file that git does not track, ignored or not, is not replaced by a commit's content. The
// control is git, which replaces it.
func TestUnknownFilesAreKept(t *testing.T) {
	const precious = "precious\n"
	for name, tt := range map[string]struct {
		tool string
		in   args
		git  []string
		// lies is where the precious file lies; the commit has new.txt and folder/new.txt.
		lies    string
		ignored bool
	}{
		"reset":                {"git_reset", args{"path": "r", "rev": "more", "mode": "hard"}, []string{"reset", "-q", "--hard", "more"}, "new.txt", false},
		"reset keep":           {"git_reset", args{"path": "r", "rev": "more", "mode": "keep"}, []string{"reset", "-q", "--keep", "more"}, "new.txt", true},
		"file for a folder":    {"git_reset", args{"path": "r", "rev": "more", "mode": "hard"}, []string{"reset", "-q", "--hard", "more"}, "folder", false},
		"folder for a file":    {"git_reset", args{"path": "r", "rev": "more", "mode": "hard"}, []string{"reset", "-q", "--hard", "more"}, "new.txt/deep", false},
		"restore":              {"git_restore", args{"files": []string{"r/new.txt"}, "source": "more"}, []string{"restore", "--source=more", "new.txt"}, "new.txt", false},
		"restore the index":    {"git_restore", args{"path": "r", "files": []string{"r"}, "source": "more", "where": "both"}, []string{"restore", "-SW", "--source=more", "."}, "folder/new.txt", true},
		"switch":               {"git_switch", args{"path": "r", "branch": "more"}, []string{"switch", "-q", "more"}, "new.txt", true},
		"switch in a folder":   {"git_switch", args{"path": "r", "branch": "more", "detach": true}, []string{"switch", "-q", "--detach", "more"}, "folder/new.txt", true},
		"stash":                {"git_stash", args{"path": "r", "action": "pop"}, []string{"stash", "pop"}, "stashed.txt", true},
		"pull":                 {"git_pull", args{"path": "r", "branch": "more"}, []string{"merge", "-q", "more"}, "new.txt", true},
		"pull by a merge":      {"git_pull", args{"path": "r", "branch": "more", "mode": "merge"}, []string{"merge", "-q", "more"}, "new.txt", true},
		"pull by a rebase":     {"git_pull", args{"path": "r", "branch": "more", "mode": "rebase"}, []string{"rebase", "-q", "more"}, "new.txt", true},
		"stash of a new place": {"git_stash", args{"path": "r", "action": "apply"}, []string{"stash", "apply"}, "stashed.txt", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{settings: map[string]any{"protocols": []string{"file"}}})
			w.repo("r")
			w.git("r", "checkout", "-qb", "more")
			w.write(map[string]string{"r/new.txt": "new\n", "r/folder/new.txt": "new\n"})
			w.git("r", "add", "-A")
			w.git("r", "commit", "-qm", "more")
			w.git("r", "checkout", "-q", "main")
			w.git("", "clone", "-q", "--bare", "r", "remote.git")
			w.git("r", "remote", "add", "origin", w.dir+"/remote.git")
			w.write(map[string]string{"r/stashed.txt": "stashed\n"})
			w.git("r", "add", "-A")
			w.git("r", "stash", "-q")
			w.write(map[string]string{"r/" + tt.lies: precious})
			if tt.ignored {
				w.write(map[string]string{"r/.git/info/exclude": tt.lies})
			}
			text := w.refused(tt.tool, tt.in, tool.Conflict)
			contains(t, text, "Untracked files would be lost: r/"+tt.lies)
			if got := w.read("r/" + tt.lies); got != precious {
				t.Fatalf("the file holds %q", got)
			}
			out, err := w.tryGit("r", tt.git...)
			if got, readErr := os.ReadFile(filepath.Join(w.dir, "r", tt.lies)); readErr == nil && string(got) == precious {
				t.Errorf("plain git has kept it: the test proves nothing\n%s%v", out, err)
			}
			w.remove("r")
			if strings.Contains(text, w.dir) {
				t.Error(text)
			}
		})
	}
}

// Before the first commit, too.
func TestUnknownFilesAreKeptBeforeTheFirstCommit(t *testing.T) {
	w := newWorkspace(t, started{})
	w.repo("r")
	w.git("r", "switch", "-q", "--orphan", "none")
	w.write(map[string]string{"r/a.txt": "precious\n", "r/.git/info/exclude": "a.txt"})
	contains(t, w.refused("git_switch", args{"path": "r", "branch": "main"}, tool.Conflict), "would be lost: r/a.txt")
	w.git("r", "switch", "-q", "main")
	if w.read("r/a.txt") == "precious\n" {
		t.Error("plain git has kept it: the test proves nothing")
	}
}

// A file that equals the commit's is not lost; anything else would be.
func TestSameFilesAreNotLost(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{})
			w.git("", "init", "-q", "-b", "main", "--object-format="+format, "r")
			w.write(map[string]string{"r/.gitattributes": "*.crlf text eol=crlf\n"})
			w.git("r", "add", "-A")
			w.git("r", "commit", "-qm", "first")
			w.write(map[string]string{"r/new.txt": "new\n", "r/folder/run": "run\n", "r/empty": "", "r/a.crlf": "a\r\nb\r\n"})
			path := func(name string) string { return filepath.Join(w.dir, "r", name) }
			if err := errors.Join(os.Chmod(path("folder/run"), 0o755), os.Symlink("new.txt", path("link"))); err != nil {
				t.Fatal(err)
			}
			w.git("r", "add", "new.txt", "folder", "empty", "link")
			w.git("r", "commit", "-qm", "second")
			second := w.git("r", "rev-parse", "HEAD")
			back := args{"path": "r", "rev": second, "mode": "hard"}
			w.must("git_reset", args{"path": "r", "rev": "HEAD~1"})
			w.must("git_reset", back)
			if got := w.git("r", "status", "--porcelain"); got != "?? a.crlf" {
				t.Errorf("the status is %q", got)
			}
			w.git("r", "rm", "-q", "--cached", "new.txt")
			w.must("git_restore", args{"path": "r", "files": []string{"r/new.txt"}, "source": "HEAD", "where": "both"})

			w.git("r", "add", "a.crlf")
			w.git("r", "commit", "-qm", "third")
			third := w.git("r", "rev-parse", "HEAD")
			for name, change := range map[string]func() error{
				"new.txt":    func() error { return os.WriteFile(path("new.txt"), []byte("mew\n"), 0o644) },
				"folder/run": func() error { return os.Chmod(path("folder/run"), 0o644) },
				"empty":      func() error { return os.Chmod(path("empty"), 0o755) },
				"link":       func() error { return errors.Join(os.Remove(path("link")), os.Symlink("old.txt", path("link"))) },
				"a.crlf":     func() error { return nil }, // git would convert it: in doubt it is lost
			} {
				w.git("r", "reset", "-q", "--hard", third)
				w.git("r", "rm", "-q", "--cached", name)
				w.git("r", "commit", "-qm", "without "+name)
				if err := change(); err != nil {
					t.Fatal(err)
				}
				contains(t, w.refused("git_reset", args{"path": "r", "rev": third, "mode": "hard"}, tool.Conflict), "would be lost: r/"+name+"\n")
			}
		})
	}
}

// Git itself does not take the place of such a file when it switches or merges, unless
// it is ignored.
func TestSameFilesInTheWay(t *testing.T) {
	for name, in := range map[string]args{
		"git_switch": {"path": "r", "branch": "more"},
		"git_pull":   {"path": "r", "branch": "more", "mode": "merge"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, started{settings: map[string]any{"protocols": []string{"file"}}})
			w.repo("r")
			w.git("r", "checkout", "-qb", "more")
			w.write(map[string]string{"r/new.txt": "new\n"})
			w.git("r", "add", "-A")
			w.git("r", "commit", "-qm", "more")
			w.git("r", "checkout", "-q", "main")
			w.git("", "clone", "-q", "--bare", "r", "remote.git")
			w.git("r", "remote", "add", "origin", w.dir+"/remote.git")
			w.write(map[string]string{"r/new.txt": "new\n"})
			contains(t, w.refused(name, in, tool.Conflict), "would be overwritten by "+map[string]string{"git_switch": "checkout", "git_pull": "merge"}[name]+": r/new.txt\n")
			w.write(map[string]string{"r/.git/info/exclude": "new.txt"})
			w.must(name, in)
			if got := w.git("r", "status", "--porcelain") + w.read("r/new.txt"); got != "new\n" {
				t.Errorf("the status and the file are %q", got)
			}
		})
	}
}

// Tracked files, and files that are not written, block nothing.
func TestKnownFilesAreNotInTheWay(t *testing.T) {
	w := newWorkspace(t, started{settings: map[string]any{"protocols": []string{"file"}}})
	w.repo("r")
	w.git("", "clone", "-q", "--bare", "r", "remote.git")
	w.git("r", "remote", "add", "origin", w.dir+"/remote.git")
	// No longer tracked here, and ignored; the remote still has it, as it was.
	w.git("r", "rm", "-q", "--cached", "dir/b.txt")
	w.write(map[string]string{"r/.gitignore": "dir\n", "r/dir/b.txt": "mine\n"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "untrack")
	w.git("", "clone", "-q", "remote.git", "theirs")
	w.write(map[string]string{"theirs/theirs.txt": "x\n"})
	w.git("theirs", "add", "-A")
	w.git("theirs", "commit", "-qm", "theirs")
	w.git("theirs", "push", "-q")
	w.must("git_pull", args{"path": "r", "branch": "main", "mode": "merge"})
	if got := w.read("r/dir/b.txt"); got != "mine\n" {
		t.Errorf("the file holds %q", got)
	}
	// A file became a folder: it is tracked, so git keeps it.
	w.git("r", "checkout", "-qb", "folder")
	w.git("r", "rm", "-q", "a.txt")
	w.write(map[string]string{"r/a.txt/in": "x\n"})
	w.git("r", "add", "-A")
	w.git("r", "commit", "-qm", "folder")
	w.must("git_switch", args{"path": "r", "branch": "main"})
	w.must("git_switch", args{"path": "r", "branch": "folder"})
	w.must("git_reset", args{"path": "r", "rev": "main", "mode": "hard"})
}
