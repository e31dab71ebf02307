package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/hostilegit"
)

// TestHostileRepositories checks that a listed command that only reads a repository starts no
// program that the repository names: either it needs approval, or git runs without the
// program. The tests of package hostilegit show that plain git starts nearly all of these
// programs.
func TestHostileRepositories(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, `
server { listen = "127.0.0.1:0" }
policy {
  actions_per_hour = "unlimited"
  commands { allow = ["git status", "git diff", "git log"] }
}
approvals { patience = "0s" }
plugin "shell" {
  tier   = "privileged"
  claims = "trust"
  sandbox {
    filesystem { exec = ["system", "workspace", "tmp"] }
  }
}
`))
	ran, asked := 0, 0
	for _, c := range append(hostilegit.Cases(), hostilegit.Case{Name: "plain", Held: true}) {
		mark := c.Make(t, filepath.Join(h.dir, "ws", c.Name))
		lines := hostilegit.Commands(filepath.Join(c.Name, c.Dir))
		got := h.post(t, "shell_exec", map[string]any{"command": strings.Join(lines, "; ")})
		switch {
		case got.ApprovalID != "":
			asked++
			h.answer(t, "reject", got.ApprovalID)
		case !c.Held:
			t.Errorf("%s runs unasked: %+v", c.Name, got)
		case got.Error != nil:
			t.Errorf("%s: %+v", c.Name, got.Error)
		default:
			ran++
		}
		if _, err := os.Stat(mark); err == nil {
			t.Errorf("%s: a program of the repository was started", c.Name)
		}
	}
	if ran < 5 || asked < 20 {
		t.Errorf("%d ran and %d were asked about: the test proves little", ran, asked)
	}
	t.Logf("%d ran, %d were asked about", ran, asked)
}
