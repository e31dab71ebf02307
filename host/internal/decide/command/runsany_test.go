package command_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

func TestRunsAny(t *testing.T) {
	for entry, want := range map[string]bool{
		"bash *": true, "/bin/sh *": true, "sh": true, "python3": true, "python3 -c *": true, "awk *": true, "xargs *": true, "timeout *": true,
		"sudo *": true, "sudo -n *": true, "make *": true, "git *": true, "npm *": true, "source *": true,
		"make": false, "make test": false, "git": false, "git push *": false, "npm run *": false, "python3 tools/check.py *": false,
		"find *": false, "env *": false, "eval *": false, "ls *": false, "ls": false, "rm *": false, "": false,
	} {
		if got := command.RunsAny(strings.Fields(entry)); got != want {
			t.Errorf("RunsAny(%q) = %v, want %v", entry, got, want)
		}
	}
}
