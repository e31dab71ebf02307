package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/front/client"
)

// TestURLReachesEveryCommand: with --url, each command asks that host, and no other: none of this
// machine, for which there is no configuration here.
func TestURLReachesEveryCommand(t *testing.T) {
	logins := alone(t)
	const nobody = "http://127.0.0.1:1"
	if err := client.SaveLogin(logins, client.Login{URL: nobody, Token: "th_any"}); err != nil {
		t.Fatal(err)
	}
	arguments := map[string][]string{
		"approvals approve": {"ap_x"}, "approvals reject": {"ap_x"}, "approvals show": {"ap_x"}, "call": {"look"}, "explain": {"look"},
		"grants confirm": {"gr_x"}, "grants revoke": {"gr_x"}, "plugins inspect": {"fs"}, "plugins restart": {"fs"}, "token revoke": {"ci"}, "token rotate": {"ci"},
		"secret remove": {"github"}, "secret set": {"github"}, "plugins accept": {"fs"}, "plugins diff": {"fs"}, "sandbox learn": {"fs"}, "notify test": {"phone"},
	}
	typed := filepath.Join(t.TempDir(), "typed") // for the one command that reads it
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
		if cmd.HasSubCommands() || words == "approvals watch" || words == "events" || words == "top" { // these wait for the host
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
	t.Setenv("TOOLHOST_TOKEN", "th_any")
	if stderr, code := run("version"); code != exitOK {
		t.Errorf("version exits with %d and says %q", code, stderr)
	}
	if stderr, code := run("tools"); code != exitFailed || !strings.Contains(stderr, "no host is running at "+nobody) {
		t.Errorf("tools exits with %d and says %q, want that it asks the host of TOOLHOST_URL", code, stderr)
	}
}

// alone makes a directory the only place for what toolhost keeps of this user, and returns the one
// of the logins in it.
func alone(t *testing.T) (logins string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, value := range map[string]string{"XDG_CONFIG_HOME": dir, "HOME": dir, "XDG_STATE_HOME": dir, "TOOLHOST_CONFIG": "", "TOOLHOST_URL": "", "TOOLHOST_TOKEN": ""} {
		t.Setenv(name, value)
	}
	return filepath.Join(dir, "toolhost", "logins")
}

// TestTokenOfTheEnvironment: TOOLHOST_TOKEN is sent to the host of TOOLHOST_URL alone, whatever --url
// names.
func TestTokenOfTheEnvironment(t *testing.T) {
	logins := alone(t)
	var sent []string
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer host.Close()
	t.Setenv("TOOLHOST_TOKEN", "of-the-environment")
	run := func(args ...string) (stderr string) {
		sent = nil
		var errs bytes.Buffer
		(&app{stdout: io.Discard, stderr: &errs}).run(t.Context(), append([]string{"tools"}, args...))
		return errs.String()
	}
	for _, other := range []string{"", "http://127.0.0.1:1"} {
		t.Setenv("TOOLHOST_URL", other)
		if stderr := run("--url", host.URL); len(sent) > 0 || !strings.Contains(stderr, "TOOLHOST_TOKEN is for the host of TOOLHOST_URL alone") || !strings.Contains(stderr, "login "+host.URL) {
			t.Errorf("with TOOLHOST_URL=%s, --url sends %q and says %q, want that there is no token", other, sent, stderr)
		}
	}
	if err := client.SaveLogin(logins, client.Login{URL: host.URL, Token: "stored"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ environment, flag, want string }{
		{"", host.URL, "stored"},
		{"http://127.0.0.1:1", host.URL, "stored"},
		{host.URL, "", "of-the-environment"},
		{host.URL + "/", host.URL, "of-the-environment"},
	} {
		t.Setenv("TOOLHOST_URL", tt.environment)
		var args []string
		if tt.flag != "" {
			args = []string{"--url", tt.flag}
		}
		if stderr := run(args...); len(sent) == 0 || sent[0] != tt.want {
			t.Errorf("with TOOLHOST_URL=%s and %v, %q was sent, want %s: %s", tt.environment, args, sent, tt.want, stderr)
		}
	}
}
