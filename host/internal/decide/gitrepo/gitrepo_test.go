package gitrepo_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/gitrepo"
	"github.com/toolhost/toolhost/internal/hostilegit"
)

// Each repository of which git would start a program in spite of the environment is
// doubted. That git does start it, package hostilegit tests.
func TestDoubt(t *testing.T) {
	doubted := 0
	for _, c := range hostilegit.Cases() {
		dir := t.TempDir()
		c.Make(t, filepath.Join(dir, "r"))
		why := gitrepo.Doubt(filepath.Join(dir, "r", c.Dir))
		if why == "" && !c.Held {
			t.Errorf("%s: no doubt", c.Name)
		}
		if why != "" {
			doubted++
			t.Logf("%s: %s", c.Name, why)
		}
	}
	if doubted < 20 {
		t.Errorf("%d repositories are doubted: the test proves little", doubted)
	}
}

// What people do with repositories every day is no reason to ask.
func TestNoDoubt(t *testing.T) {
	dir := t.TempDir()
	for _, line := range []string{
		"git init -q -b main up", "git -C up -c user.name=a -c user.email=a@b commit -q --allow-empty -m one", "git clone -q up r",
		"git -C r switch -q -c topic", "git -C r branch -q --set-upstream-to=origin/main", "git -C r config user.name a", "git -C r config core.autocrlf input",
		"git -C r config color.ui false", "git -C r config diff.algorithm histogram", "git -C r config merge.conflictStyle zdiff3", "git -C r config pull.rebase true",
		"git -C r config --add remote.origin.fetch +refs/pull/*:refs/pull/*", "touch r/a r/ab r/abc r/" + strings.Repeat("long", 50), "mkdir r/d", "touch r/d/x", "git -C r add -A", "git -C r -c user.name=a -c user.email=a@b commit -qm two", "git -C r worktree add -q ../wt",
		"git -C r config core.hooksPath .husky", "mkdir -p r/sub none", "git -C r update-index --index-version 4",
	} {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
		cmd.Dir, cmd.Env = dir, hostilegit.Environment(dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	for _, at := range []string{"r/sub", "wt"} {
		cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--full-name", ":/")
		cmd.Dir, cmd.Env = filepath.Join(dir, at), hostilegit.Environment(dir)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			want = append(want, filepath.Join(dir, strings.TrimSuffix(at, "/sub"), name))
		}
		if err := gitrepo.Tracked(filepath.Join(dir, at), func(path string) { got = append(got, path) }); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: Tracked gives %q, %v, want %q", at, got, err, want)
		}
	}
	for _, at := range []string{"r", "r/sub", "wt", "none", "missing"} {
		if why := gitrepo.Doubt(filepath.Join(dir, at)); why != "" {
			t.Errorf("%s: %s", at, why)
		}
	}
}
