package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestURLReachesEveryCommand: with --url, each command asks that host, and no other: none of this
// machine, for which there is no configuration here.
func TestURLReachesEveryCommand(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, value := range map[string]string{"XDG_CONFIG_HOME": dir, "HOME": dir, "XDG_STATE_HOME": dir, "TOOLHOST_CONFIG": "", "TOOLHOST_URL": "", "TOOLHOST_TOKEN": "th_any"} {
		t.Setenv(name, value)
	}
	arguments := map[string][]string{
		"approvals approve": {"ap_x"}, "approvals reject": {"ap_x"}, "approvals show": {"ap_x"}, "call": {"look"}, "explain": {"look"},
		"grants confirm": {"gr_x"}, "grants revoke": {"gr_x"}, "plugins inspect": {"fs"}, "plugins restart": {"fs"}, "token revoke": {"ci"}, "token rotate": {"ci"},
		"secret remove": {"github"}, "secret set": {"github"},
	}
	const nobody = "http://127.0.0.1:1"
	typed := filepath.Join(dir, "typed") // for the one command that reads it
	if err := os.WriteFile(typed, []byte("a value\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdin, err := os.Open(typed)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	run := func(args ...string) (stderr string, code int) {
		var out, errs bytes.Buffer
		a := &app{stdin: stdin, stdout: &out, stderr: &errs}
		code = a.run(t.Context(), args)
		return errs.String(), code
	}
	asked := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		words := strings.TrimPrefix(cmd.CommandPath(), "toolhost ")
		if cmd.HasSubCommands() || words == "approvals watch" { // a watch waits for the host
			return
		}
		args := append(strings.Fields(words), arguments[words]...)
		stderr, code := run(append(args, "--url", nobody)...)
		switch {
		case isLocal(cmd):
			if code != exitUsage || !strings.Contains(stderr, "--url does not apply to "+cmd.CommandPath()) && len(arguments[words]) == 0 && !strings.Contains(stderr, "expected ") {
				t.Errorf("%s exits with %d and says %q, want that --url does not apply", words, code, stderr)
			}
		case code != exitFailed || !strings.Contains(stderr, "no host is running at "+nobody):
			t.Errorf("%s exits with %d and says %q, want that no host runs there", words, code, stderr)
		default:
			asked++
		}
	}
	walk((&app{}).root(func() {}))
	if asked < 15 {
		t.Errorf("%d commands were tried: the test would prove nothing", asked)
	}
	// The environment has no effect on what works with this machine.
	t.Setenv("TOOLHOST_URL", nobody)
	if stderr, code := run("version"); code != exitOK {
		t.Errorf("version exits with %d and says %q", code, stderr)
	}
	if stderr, code := run("tools"); code != exitFailed || !strings.Contains(stderr, "no host is running at "+nobody) {
		t.Errorf("tools exits with %d and says %q, want that it asks the host of TOOLHOST_URL", code, stderr)
	}
}
