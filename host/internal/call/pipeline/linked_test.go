package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestSensitiveCommands checks that commands need approval if they show a sensitive file
// through a link, or as a change that git prints, and that others do not.
func TestSensitiveCommands(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	script := `export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
for r in secret plain; do git init -q $r; mkdir $r/src; echo 1 > $r/src/a.go; echo 1 > $r/main.go; done
echo KEY > secret/.env
for r in secret plain; do git -C $r add -A; git -C $r commit -qm one; done
cp -r secret v4; git -C v4 update-index --index-version 4; cp -r secret broken; echo x > broken/.git/index
mkdir -p .ssh/deep; echo KEY > .ssh/k; ln -s .ssh/deep way; ln -s secret/.env link; ln -s .ssh dir; ln -s main.go other; ln -s link chain`
	setup := exec.CommandContext(t.Context(), "bash", "-ec", script)
	setup.Dir = ws
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rules, err := policy.New(policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Settings{Policy: rules, Roots: []string{ws}}
	for _, tt := range []struct {
		line string
		want policy.Verdict // for sensitive files
	}{
		{"cat link", policy.Confirm},
		{"cat chain", policy.Confirm},
		{"cat dir/k", policy.Confirm},
		{"cd dir && cat k", policy.Confirm},
		{"head -c9 < link", policy.Confirm},
		{"cat " + ws + "/link", policy.Confirm},
		{"cat way/../k", policy.Confirm},
		{"tac --file=" + ws + "/way/../k", policy.Confirm},
		{"cat <way/../k", policy.Confirm},
		{"cat secret/../main.go", policy.Allow},
		{"cat other", policy.Allow},
		{"cat main.go", policy.Allow},

		{"git -C secret diff", policy.Ask},
		{"cd secret && git log -p", policy.Ask},
		{"git -C v4 diff", policy.Ask},
		{"git -C broken diff", policy.Ask},
		{"git -C secret/src show", policy.Ask},
		{"git -C secret diff HEAD~1", policy.Ask},
		{"git -C secret show HEAD", policy.Ask},
		{"git -C secret diff --stat -p", policy.Ask},
		{"git -C secret log -U1", policy.Ask},
		{"git -C secret status -v", policy.Ask},
		{"git -C secret diff -- .", policy.Ask},
		{"git -C secret diff main.go -p .", policy.Ask},
		{"git -C secret diff -- '*.go'", policy.Ask},
		{"git -C secret diff -S main.go", policy.Ask},
		{"git -C secret diff --check", policy.Ask},
		{"git -C secret stash show", policy.Ask},
		{"git -C secret diff $OPTION", policy.Ask},

		{"git -C secret diff -- src", policy.Allow},
		{"git -C secret diff HEAD src main.go", policy.Allow},
		{"git -C secret diff -- . ':!.env'", policy.Allow},
		{"git -C secret diff --stat", policy.Allow},
		{"git -C secret diff --name-only HEAD~1", policy.Allow},
		{"git -C secret show HEAD:main.go", policy.Allow},
		{"git -C secret log --oneline -5", policy.Allow},
		{"git -C secret status", policy.Allow},
		{"git -C plain diff", policy.Allow},
		{"git -C plain diff HEAD~1", policy.Allow},
		{"git -C plain log -p", policy.Allow},
		{"git -C plain show", policy.Allow},
		{"git diff", policy.Allow}, // not a repository
		{"git diff empty .", policy.Ask},
		{"git -C secret show -s HEAD", policy.Allow},
		{"git -C secret show --stat HEAD~1", policy.Allow},
		{"git -C secret show -s 0f1e2d", policy.Ask},
		{"git -C secret show --name-only tag", policy.Ask},
		{"git -C secret show --format=%h:%s", policy.Ask},
		{"git -C secret log --oneline '-G^KEY=s'", policy.Ask},
		{"git -C secret log --pickaxe-regex -S KEY", policy.Ask},
		{"git -C plain log --oneline -Gsuper", policy.Allow},
	} {
		in := policy.Input{
			Plugin: "shell", Tool: "run", Tier: tool.ReadOnly, Folders: []string{ws},
			Commands: []policy.Command{{Line: command.Parse(tt.line, rules.Reading(s.Roots))}},
		}
		s.notePatches(&in)
		in.Linked = linked(&in)
		d := rules.Decide(in)
		if got := d.Verdict; !strings.HasPrefix(d.Rule, "paths.sensitive") && tt.want != policy.Allow || strings.HasPrefix(d.Rule, "paths.sensitive") && got != tt.want {
			t.Errorf("%s: %v by %s, want %v", tt.line, got, d.Rule, tt.want)
		}
	}
	if err := os.Remove(filepath.Join(ws, "plain", ".git", "index")); err != nil {
		t.Fatal(err)
	}
	in := policy.Input{Folders: []string{ws}, Commands: []policy.Command{{Line: command.Parse("git -C plain diff", rules.Reading(s.Roots))}}}
	if s.notePatches(&in); in.Commands[0].Line.Segments[0].Bulk == "" {
		t.Error("a repository without a list of files is not asked about")
	}
}
