package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
)

// TestCasesShellThroughTheHost makes each call in the table of commands as an agent over every
// front end of a running host: commands that must not run never reach the plugin, which
// reports what it would run.
func TestCasesShellThroughTheHost(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("TOOLHOST_CASES")
	if dir == "" {
		dir = filepath.Join("internal", "decide", "policy", "testdata", "cases")
	}
	text, err := os.ReadFile(filepath.Join(dir, "shell.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Policy struct {
			Allow, Deny []string
			Redirects   []string `json:"redirect_write_auto"`
			Assign      []string `json:"safe_env_assign"`
		}
		Cases []struct{ ID, Command, Expect string }
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Cases) == 0 {
		t.Fatal("the table is empty")
	}
	h := serve(t, writeConfig(t, fmt.Sprintf(`
server { listen = "127.0.0.1:0" }
plugin "commands" {
  tier   = "privileged"
  claims = "trust"
}
approvals {
  patience = "0s"
}
policy {
  actions_per_hour = "unlimited"
  commands {
    allow           = %s
    deny            = %s
    assign          = %s
    write_redirects = %s
  }
}
`, asJSON(table.Policy.Allow), asJSON(table.Policy.Deny), asJSON(table.Policy.Assign), asJSON(table.Policy.Redirects))))
	seed := soak.Seed(t)
	fronts := ways(t, h)
	for n, w := range fronts {
		tried, reached := 0, 0
		for i, tt := range table.Cases {
			if !soak.Today(seed, i+n, len(fronts)) {
				continue // another front end has it today
			}
			tried++
			said, failed, err := w.call(t.Context(), "shell_exec", map[string]any{"command": tt.Command})
			if err != nil {
				t.Fatalf("%s over %s: %v", tt.ID, w.name, err)
			}
			ran := !failed && strings.Contains(said, "would run ")
			if ran {
				reached++
			}
			if ran != (tt.Expect == "allow") {
				t.Errorf("%s over %s: it ran is %v, expected %s: %s", tt.ID, w.name, ran, tt.Expect, said)
			}
			if tt.Expect == "deny" && !strings.Contains(said, "Security policy violation: ") {
				t.Errorf("%s over %s: %s, want a denial with its reason", tt.ID, w.name, said)
			}
		}
		if reached == 0 || reached == tried {
			t.Errorf("over %s %d of %d calls ran: the test proves nothing", w.name, reached, tried)
		}
	}
	t.Logf("%d cases", len(table.Cases))
}
