package pipeline

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// TestDoubtRepositories checks git in every directory in which a command may run it, and after
// other commands of the line that may create the repository.
func TestDoubtRepositories(t *testing.T) {
	ws := t.TempDir()
	for _, line := range []string{"git init -q good", "git init -q bad", "git -C bad config filter.x.clean ./evil", "mkdir bad/sub"} {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
		cmd.Dir = ws
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	for _, tt := range []struct {
		line, cwd string
		doubted   bool
	}{
		{"git -C good status", "", false},
		{"git -C bad status", "", true},
		{"git -C bad/sub log -p", "", true},
		{"git -C bad -C sub diff", "", true},
		{"git -C " + ws + "/bad diff", "", true},
		{"cd bad && git status", "", true},
		{"cd bad && cd sub && git status", "", true},
		{"timeout 5 git -C bad status", "", true},
		{"ls | git -C bad grep x", "", true},
		{"echo $(git -C bad status)", "", true},
		{"/usr/bin/git -C bad status", "", true},
		{"cd bad && go build ./...", "", true},
		{"git status", "bad", true},
		{"git status", "good", false},
		{"git status", "", false},
		{"ls bad", "", false},
		{"cp -r bad good2 && git -C good2 status", "", true},
		{"git add x && git commit -m y", "good", false},
		{strings.Repeat("cd a; cd b; cd c; ", 12) + "git -C good status", "", true},
	} {
		in := policy.Input{Folders: []string{ws}, Commands: []policy.Command{{Line: command.Parse(tt.line, command.Options{Workspace: ws})}}}
		if tt.cwd != "" {
			in.Paths = []policy.Path{{Name: tt.cwd, Absolute: filepath.Join(ws, tt.cwd)}}
		}
		before := len(in.Commands[0].Line.Problems)
		doubtRepositories(&in)
		problems := in.Commands[0].Line.Problems[before:]
		if (len(problems) > 0) != tt.doubted {
			t.Errorf("%s in %q: %v, want a doubt: %t", tt.line, tt.cwd, problems, tt.doubted)
		}
		for _, p := range problems {
			if p.Risk != command.High {
				t.Errorf("%s: the risk is %v", tt.line, p.Risk)
			}
		}
	}
}
