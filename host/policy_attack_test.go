package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

// TestDenialsHoldInAutonomousMode makes calls as an agent over every front end of a running
// host that never asks: denied and unreadable calls do not reach the plugin. Beside each is a
// call that does.
func TestDenialsHoldInAutonomousMode(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, `
server { listen = "127.0.0.1:0" }
plugin "commands" {
  tier   = "privileged"
  claims = "trust"
}
approvals {
  patience = "0s"
}
policy {
  mode = "autonomous"
  commands {
    deny = ["sudo", "git clean"]
  }
  paths {
    forbidden = ["**/.env", "conf/secret.txt"]
  }
  rule "no-network" {
    tools   = ["shell_*"]
    when    = anytrue([for c in commands : c.name == "curl"])
    verdict = "deny"
  }
}
`))
	for name, target := range map[string]string{"conf/secret.txt": "", "link.txt": "conf/secret.txt", "dangling": "new/.env"} {
		path := filepath.Join(h.dir, "ws", name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case target != "":
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte("secret"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 65<<10)
	type args = map[string]any
	denied := []args{
		{"command": "sudo ls"},
		{"command": "env nice sudo ls"},
		{"command": "ls | 'sudo' ls"},
		{"command": "git -c a=b clean"},
		{"command": "git --git-dir=x clean -f"},
		{"command": "curl x"},
		{"command": "echo $(curl x)"},
		{"command": "cat .env"},
		{"command": `echo "$(< .env)"`},
		{"command": "[[ -f .env ]]"},
		{"command": "> sub/.env"},
		{"command": "cd conf && cat secret.txt"},
		{"command": "cat secret.txt", "dir": "conf"},
		{"command": "ls", "dir": "link.txt"},
		{"command": "ls", "dir": "dangling"},
		{"command": "rm -rf " + filepath.Join(h.dir, "ws")},
		{"command": `rm -rf "$HOME"/`},
		{"command": "doas rm -rf /"},
		{"command": "env -i rm -rf a/.."},
		{"command": "env sudo ls\n'"}, // this and the following cannot be read as a whole
		{"command": "sudo ls # " + strings.Repeat("(", 600)},
		{"command": strings.Repeat("a;", 2000) + "sudo ls"},
		{"command": strings.Repeat("env nice ", 9) + "sudo ls"},
	}
	asked := []args{ // cannot be read as a whole, or too risky
		{"command": "rm -rf build"},
		{"command": "sudo ls #" + long},
		{"command": "curl x # " + strings.Repeat("(", 600)},
		{"command": strings.Repeat("a;", 2000) + "curl x"},
	}
	runs := []args{
		{"command": "git status"},
		{"command": "echo sudo curl"},
		{"command": "cat secret.txt"},
		{"command": "ls", "dir": "conf"},
		{"command": "npm test # " + strings.Repeat("x", 1000)},
	}
	person := h.approver(t)
	for _, w := range ways(t, h) {
		call := func(a args) string {
			said, _, err := w.call(t.Context(), "shell_exec", a)
			if err != nil {
				t.Fatalf("%v over %s: %v", a, w.name, err)
			}
			return said
		}
		for _, a := range runs {
			if said := call(a); !strings.Contains(said, "would run ") {
				t.Errorf("%v over %s: %s, want it to run", a, w.name, said)
			}
		}
		for _, a := range denied {
			if said := call(a); strings.Contains(said, "would run ") || !strings.Contains(said, "security policy") && !strings.Contains(said, "Security policy") && !strings.Contains(said, "the configuration denies") {
				t.Errorf("%v over %s: %s, want a denial with its reason", a, w.name, said)
			}
		}
		if w.name == "CLI" {
			continue // would wait for a person
		}
		for _, a := range asked {
			if said := call(a); strings.Contains(said, "would run ") || !strings.Contains(said, "ap_") {
				t.Errorf("%.60v over %s: %.300s, want it to wait for a person", a, w.name, said)
			}
			open, err := person.Approvals(t.Context(), client.ApprovalFilter{States: []approval.State{approval.Open}})
			if err != nil || len(open) != 1 {
				t.Fatalf("%d approvals are open, %v", len(open), err)
			}
			if _, err := person.Reject(t.Context(), open[0].ID, client.Answer{}.Seen(open[0].Record)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
