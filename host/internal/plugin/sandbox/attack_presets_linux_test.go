package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/protect"
)

// presetAttacks change files in a workspace that are protected by name, at any depth.
func presetAttacks() []attack {
	// The file must stay as it is; there may be other files next to it, "" for none.
	keep := func(file string, beside ...string) func(*scene) attempt {
		return func(s *scene) attempt {
			for _, name := range append(beside, file) {
				must(s.t, os.MkdirAll(s.path("workspace/"+filepath.Dir(name)), 0o755))
				s.write("workspace/"+name, "true", 0o644)
			}
			s.giveWorkspace()
			return attempt{
				program:  []string{"replace", file},
				profile:  func(p *Profile) { p.Confinement.Presets = protect.Presets() },
				happened: changed(s.path("workspace/"+file), "true"),
			}
		}
	}
	return []attack{
		{name: "replace the configuration of a repository (`.git/config`)", root: "is", stage: keep(".git/config")},
		{name: "replace the configuration of a nested repository", root: "is", stage: keep("a/b/.git/config")},
		{name: "replace the attributes of a repository (`.git/info/attributes`)", root: "is", stage: keep(".git/info/attributes")},
		{name: "replace the configuration of a submodule (`.git/modules/*/config`)", root: "is", stage: keep(".git/modules/a/b/config", ".git/modules/a/b/HEAD", ".git/modules/a/b/objects/x", ".git/modules/a/b/refs/x")},
		{name: "replace the configuration of a bare repository", root: "is", stage: keep("b.git/config", "b.git/HEAD", "b.git/objects/x", "b.git/refs/x")},
		{name: "replace the file that says where a repository is (`.git`)", root: "is", stage: keep("wt/.git")},
		{name: "replace what an editor reads (`.vscode/tasks.json`)", root: "is", stage: keep(".vscode/tasks.json")},
		{name: "replace what an agent reads (`.claude/settings.json`, in a directory)", root: "is", stage: keep("a/.claude/settings.json")},
		{name: "replace what a shell reads that enters a directory (`.envrc`)", root: "is", stage: keep("a/.envrc")},
	}
}

// A file that is protected by name is found at any depth and in any case, and never through a
// link.
func TestSearchProtected(t *testing.T) {
	ws := t.TempDir()
	for _, name := range []string{
		".git/config", ".git/config.worktree", ".git/info/exclude", ".git/hooks/x", ".git/index", ".git/HEAD", ".git/objects/config",
		".git/modules/m/HEAD", ".git/modules/m/objects/x", ".git/modules/m/refs/x", ".git/modules/m/config", ".git/modules/m/modules/n/HEAD",
		".git/modules/m/modules/n/objects/x", ".git/modules/m/modules/n/refs/x", ".git/modules/m/modules/n/hooks/x",
		".git/worktrees/w/HEAD", ".git/worktrees/w/commondir", ".git/worktrees/w/config.worktree",
		"a/.GIT/Config", "a/sub/.git", "b/HEAD", "b/objects/x", "b/refs/x", "b/config", "b/info/attributes", "c/config", "c/hooks/x",
		"d/.vscode/x", "d/.Envrc", "d/deep/.mcp.json", ".husky/pre-commit", "d/.envrc.sample",
	} {
		must(t, os.MkdirAll(filepath.Join(ws, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(ws, name), nil, 0o644))
	}
	must(t, os.Symlink("d", filepath.Join(ws, "link")))
	for _, tt := range []struct {
		presets, want []string
	}{
		{nil, nil},
		{[]string{protect.Hooks}, []string{
			".git/hooks", ".git/modules/m/modules/n/hooks", ".husky", "a/sub/.git",
		}},
		{protect.Presets(), []string{
			".git/config", ".git/config.worktree", ".git/hooks", ".git/info", ".git/modules/m/config", ".git/modules/m/modules/n/hooks",
			".git/worktrees/w/commondir", ".git/worktrees/w/config.worktree", ".husky", "a/.GIT/Config", "a/sub/.git",
			"b/config", "b/info", "d/.Envrc", "d/.vscode", "d/deep/.mcp.json",
		}},
	} {
		found, unsearched := searchProtected(ws, tt.presets, maxSearched)
		var got []string
		for _, path := range found {
			if _, err := os.Lstat(path); err == nil {
				got = append(got, strings.TrimPrefix(path, ws+"/"))
			}
		}
		if len(unsearched) > 0 {
			t.Errorf("searchProtected(%q) has not looked at %q", tt.presets, unsearched)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("searchProtected(%q) (-want +got):\n%s", tt.presets, diff)
		}
		// Except in the bare repository, Covers agrees by the names alone.
		for _, path := range got {
			if !strings.HasPrefix(path, "b/") && !protect.Covers(tt.presets, path) {
				t.Errorf("Covers(%q, %q) = false, but it is found", tt.presets, path)
			}
		}
	}
}

// A workspace that is too large is reported, and its top is still protected.
func TestSearchIsBounded(t *testing.T) {
	ws := t.TempDir()
	must(t, os.WriteFile(filepath.Join(ws, ".envrc"), nil, 0o644))
	for i := range maxFound + 1 {
		dir := filepath.Join(ws, "many", strings.Repeat("x", 1+i%50), strings.Repeat("y", 1+i/50))
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, ".envrc"), nil, 0o644))
	}
	found, unsearched := searchProtected(ws, protect.Presets(), maxSearched)
	if len(unsearched) == 0 || len(found) < maxFound {
		t.Errorf("found %d, not searched: %q; want %d, and that it is not all", len(found), unsearched, maxFound)
	}
}

// Directories that programs fill are searched last, so that they hide no repository next to
// them, however deep it is.
func TestSearchLooksAtFilledDirectoriesLast(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	for i := range 10 {
		must(t, os.MkdirAll(filepath.Join(ws, "a", "node_modules", strings.Repeat("m", i+1), "lib"), 0o755))
	}
	config := filepath.Join(ws, "packages", "b", "c", "d", ".git", "config")
	hidden := filepath.Join(ws, "a", "node_modules", "m", "lib", ".envrc")
	for _, path := range []string{config, hidden} {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, nil, 0o644))
	}
	found, unsearched := searchProtected(ws, protect.Presets(), 10)
	if !slices.Contains(found, config) {
		t.Errorf("found %q, want %s", found, config)
	}
	if dir := filepath.Join(ws, "a", "node_modules"); len(unsearched) == 0 || !within(unsearched[0], dir) {
		t.Errorf("not searched: %q, want what is in %s", unsearched, dir)
	}
	found, unsearched = searchProtected(ws, protect.Presets(), maxSearched)
	if !slices.Contains(found, hidden) || len(unsearched) > 0 {
		t.Errorf("found %q, not searched: %q; want %s and all", found, unsearched, hidden)
	}
}
