package roots_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/roots"
)

// TestProtected checks that every way to change something protected is refused, however the
// path is written. The control makes the same calls without protection: all succeed.
func TestProtected(t *testing.T) {
	outside := tree(t, map[string]string{"x.txt": "x"})
	files := map[string]string{
		"conf/host.hcl": "secret plan", "conf/other": "o", "state/db": "d", "state/deep/er": "e", "a.txt": "a", "dir/b": "b",
		"alias": "-> conf", "to-file": "-> conf/host.hcl", "abs": "-> $DIR/conf", "link.hcl": "-> real.hcl", "real.hcl": "r",
		"hop1": "-> hop2", "hop2": "-> deepest", "deepest/c": "c",
		"repo/.git/hooks/pre-commit": "h", "repo/.git/config": "c", "repo/.git/HEAD": "h", "like/hooks/pre-commit": "h", "like/config": "c",
		"ide/.vscode/tasks.json": "t", "to-editor": "-> ide/.vscode",
	}
	protected := func(dir string) []string {
		return []string{
			dir + "/conf/host.hcl", dir + "/state", dir + "/link.hcl", dir + "/hop1/c", dir + "/not/yet.hcl", outside + "/x.txt", "/nowhere",
		}
	}
	type try struct {
		name string
		do   func(r *roots.Roots, dir string) string
	}
	writes := func(name string) try {
		return try{"write " + name, func(r *roots.Roots, _ string) string { return write(r, name, "new", parents, roots.WriteOptions{}) }}
	}
	moves := func(from, to string) try {
		return try{"move " + from + " to " + to, func(r *roots.Roots, _ string) string {
			return transfer(t, r, from, to, roots.MoveOptions{Overwrite: true})
		}}
	}
	copies := func(from, to string) try {
		return try{"copy " + from + " to " + to, func(r *roots.Roots, _ string) string {
			return transfer(t, r, from, to, roots.MoveOptions{Overwrite: true, Copy: true})
		}}
	}
	removes := func(name string) try {
		return try{"remove " + name, func(r *roots.Roots, _ string) string { return remove(r, name) }}
	}
	for _, tt := range []try{
		writes("conf/host.hcl"), writes("./conf//../conf/host.hcl"), writes("alias/host.hcl"), writes("to-file"), writes("abs/host.hcl"),
		{"write by its absolute path", func(r *roots.Roots, dir string) string {
			return write(r, dir+"/conf/host.hcl", "new", parents, roots.WriteOptions{})
		}},
		writes("state/db"), writes("state/new"), writes("state/deep/new/file"), writes("not/yet.hcl"), writes("NOT/Yet.HCL"), writes("not/yet.hcl/x"),
		writes("link.hcl"), writes("real.hcl"), writes("hop1/c"), writes("hop2/c"), writes("deepest/c"),
		writes("repo/.git/config"), writes("repo/.git/hooks/new"), writes("new/.git/hooks/new"), writes(".git/config"),
		// Files that make git read another configuration or run other hooks.
		writes("repo/.git/HEAD"), writes("repo/.git/commondir"), writes("repo/.git/config.worktree"), writes("repo/.git/info/attributes"),
		writes("repo/.git/modules/m/hooks/post-checkout"), writes("sub/.git"), moves("a.txt", "sub/.git"), copies("a.txt", "sub/.git"),
		// Names that a file system that ignores case considers equal.
		writes("repo/.GIT/config"), writes("repo/.g\u200dit/config"), writes("repo/\uff0egit/config"), writes("repo/.git\ufe0f/config"),
		writes("not/ye\uff54.hcl"), moves("like", ".G\uff29T"),
		// Files that control editors, agents and hooks, in other cases, with trailing dots,
		// and through links.
		writes(".envrc"), writes("new/.vscode/tasks.json"), writes("new/.VSCode/x"), writes(".idea/x"), writes(".claude/settings.json"), writes(".mcp.json"),
		writes(".mcp.json."), writes(".cursor/mcp.json"), writes(".codex/x"), writes(".husky/pre-commit"), writes(".pre-commit-config.yaml"),
		writes("repo/.git./config"), writes("repo/git~1/config"), writes("to-editor/tasks.json"), moves("like", ".husky"), copies("a.txt", "dir/.envrc"),
		removes("ide/.vscode/tasks.json"), moves("ide/.vscode", "gone"),
		{"make a directory", func(r *roots.Roots, _ string) string { return mkdir(r, "state/new") }},
		{"make the directory", func(r *roots.Roots, _ string) string { return mkdir(r, "not/yet.hcl") }},
		moves("conf/host.hcl", "gone"), moves("conf", "gone"), moves("state", "gone"), moves("state/deep", "gone"), moves("link.hcl", "gone"),
		moves("hop1", "gone"), moves("hop2", "gone"), moves("deepest", "gone"), moves("alias/host.hcl", "gone"),
		moves("a.txt", "conf/host.hcl"), moves("dir", "state/dir"), moves("a.txt", "not/yet.hcl"), moves("conf/other", "state/db"),
		moves("repo/.git", "gone"), moves("repo/.git/hooks", "gone"), moves("repo/.git/config", "gone"), moves("like", ".git"), moves("like", "new/.git"),
		moves("like/hooks", "repo/.git/hooks/x"), moves("like/config", "repo/.git/config"),
		copies("a.txt", "conf/host.hcl"), copies("dir", "state/dir"), copies("like", ".git"), copies("a.txt", "repo/.git/hooks/post-commit"), copies("a.txt", "not/yet.hcl"),
		removes("conf/host.hcl"), removes("conf"), removes("state"), removes("state/db"), removes("link.hcl"), removes("hop1"), removes("deepest/c"), removes("deepest"),
		removes("repo/.git/hooks"), removes("repo/.git/config"), removes("abs/host.hcl"),
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := tree(t, files)
			want := contents(t, dir)
			guarded := openWith(t, roots.Options{Protected: protected(dir)}, dir)
			if got := tt.do(guarded, dir); !strings.HasPrefix(got, "permission_denied: Path not allowed by security policy: ") {
				t.Errorf("got %q, want it to be refused", got)
			}
			if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
				t.Errorf("the files (-want +got):\n%s", diff)
			}
			control := openWith(t, roots.Options{Protect: []string{}, Secrets: []string{}}, dir)
			if got := tt.do(control, dir); got != "" {
				t.Errorf("without protection: %q, so the test shows nothing", got)
			}
		})
	}
}

// TestBesideProtected checks that files beside a protected path can be changed.
func TestBesideProtected(t *testing.T) {
	dir := tree(t, map[string]string{
		"conf/host.hcl": "p", "conf/other": "o", "conf2": "c", "repo/.git/hooks/x": "h", "repo/.gitignore": "i", "dir/b": "b",
	})
	r := openWith(t, roots.Options{Protected: []string{dir + "/conf/host.hcl", dir + "/missing/file"}}, dir)
	for name, got := range map[string]string{
		"write":             write(r, "conf/other", "new", follow, roots.WriteOptions{}),
		"write a like name": write(r, "conf/host.hcl2", "new", follow, roots.WriteOptions{}),
		"write .gitignore":  write(r, "repo/.gitignore", "new", follow, roots.WriteOptions{}),
		"write above":       write(r, "missing/other", "new", parents, roots.WriteOptions{}),
		"move":              transfer(t, r, "conf2", "conf/conf2", roots.MoveOptions{}),
		"move a repository": transfer(t, r, "repo", "repository", roots.MoveOptions{}),
		"copy what is":      transfer(t, r, "conf/host.hcl", "copy", roots.MoveOptions{Copy: true}),
		"remove":            remove(r, "dir"),
	} {
		if got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestProtectedHardLink checks that a hard link to a protected file is refused for that
// reason, not for the number of its links as in the control.
func TestProtectedHardLink(t *testing.T) {
	dir := tree(t, map[string]string{"conf/host.hcl": "p"})
	if err := os.Link(dir+"/conf/host.hcl", dir+"/harmless"); err != nil {
		t.Fatal(err)
	}
	r := openWith(t, roots.Options{Protected: []string{dir + "/conf/host.hcl"}}, dir)
	const want = "permission_denied: Path not allowed by security policy: harmless"
	if got := write(r, "harmless", "new", follow, roots.WriteOptions{}); got != want {
		t.Errorf("Write = %q, want %q", got, want)
	}
	if got := write(open(t, dir), "harmless", "new", follow, roots.WriteOptions{}); got == "" || got == want {
		t.Errorf("without protection: %q, so the test shows nothing", got)
	}
}

func TestProtectMistakes(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		opts roots.Options
		want string
	}{
		{roots.Options{Protected: []string{"relative"}}, `protected path "relative" is not absolute`},
		{roots.Options{Protect: []string{"a//b"}}, `protect pattern "a//b"`},
		{roots.Options{Protect: []string{"[x"}}, `protect pattern "[x" is not a glob`},
	} {
		if _, err := roots.Open([]string{dir}, tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Open(%+v) = %v, want %q", tt.opts, err, tt.want)
		}
	}
}
