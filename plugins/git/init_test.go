package main

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestInit(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, started{})
	w.write(map[string]string{"old/a.txt": "a\n", "file": "x\n"})
	for path, said := range map[string]string{"old": "in old, ", "new/dir": "in new/dir, "} {
		in := args{"path": path}
		p, text := w.preview("git_init", in)
		contains(t, text, "Creates a git repository "+said)
		if there(w, path+"/.git") {
			t.Errorf("the preview creates %s/.git", path)
		}
		if got := w.approved("git_init", in, p); got.Error != nil {
			t.Fatal(got.Error)
		}
		if got := w.git(path, "config", "--local", "--list", "--name-only"); got != "core.repositoryformatversion\ncore.filemode\ncore.bare\ncore.logallrefupdates" {
			t.Errorf("%s has the settings %q", path, got)
		}
		if there(w, path+"/.git/hooks") {
			t.Errorf("%s has hooks", path)
		}
		contains(t, w.refused("git_init", in, tool.Conflict), "already has a .git")
	}
	contains(t, w.must("git_status", args{"path": "old"}), "On branch main, no commits yet", "a.txt")
	w.refused("git_init", args{"path": "file"}, tool.Conflict)
	w.refused("git_init", args{"path": ".."}, tool.PermissionDenied)
	w.link("..", "out")
	w.refused("git_init", args{"path": "out/x"}, tool.PermissionDenied)
	w.forbidding(started{}, w.dir+"/secret/**")
	w.refused("git_init", args{"path": "secret"}, tool.PermissionDenied)
}
