package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/internal/testprogram"
)

// printer writes a program and returns its path, in a directory that only its owner can change.
func printer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "printer")
	if err := testprogram.Write(path, strings.NewReader("#!/bin/sh\n")); err != nil {
		t.Fatal(err)
	}
	return path
}

// requests returns a plugin block that may request secrets.
func requests(secrets string) string {
	return "plugin \"a\" {\n path = \"/bin/a\"\n tier = \"read_only\"\n secrets = [" + secrets + "]\n}\n"
}

// TestSecretCommands: a command is read and its program checked, and it runs only when it is asked
// for, if a plugin may request its secret.
func TestSecretCommands(t *testing.T) {
	t.Parallel()
	program := printer(t)
	exec := func(name string) string {
		return fmt.Sprintf("secret %q {\n exec = [%q, \"show\", %q]\n}\n", name, program, name)
	}
	dir := write(t, map[string]string{
		"config.hcl": "workspace = \".\"\n" + exec("one") + exec("two") + exec("unused") + "secret \"three\" {\n value = \"written out\"\n}\n" + requests(`"one", "two", "three"`),
	})
	reload := func() *config.Config {
		t.Helper()
		cfg, err := config.Load(dir, config.LoadOptions{LookupEnv: environment(map[string]string{"XDG_STATE_HOME": "/nowhere"})})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	cfg := reload()
	if !slices.Contains(cfg.Protected, program) || !slices.Contains(cfg.Sources, program) {
		t.Errorf("protected are %q, sources %q, want %s in both", cfg.Protected, cfg.Sources, program)
	}
	var ran []string
	err := cfg.ReadSecrets(func(argv []string) ([]byte, error) {
		ran = append(ran, strings.Join(argv, " "))
		return []byte("the value of " + argv[2] + "\nand a second line\n\n"), nil
	})
	if want := []string{program + " show one", program + " show two"}; err != nil || !slices.Equal(ran, want) {
		t.Fatalf("ReadSecrets() = %v after %q, want %q", err, ran, want)
	}
	given := cfg.Plugins[0].Supervisor.Secrets
	if given["one"] != "the value of one\nand a second line\n" || given["two"] != "the value of two\nand a second line\n" || given["three"] != "written out" {
		t.Errorf("the plugin gets %q", given)
	}
	if got := cfg.Hide("log: the value of one\nand a second line, written out"); got != "log: (hidden), (hidden)" {
		t.Errorf("Hide() = %q", got)
	}
	again := reload()
	if err := again.ReadSecrets(func(argv []string) ([]byte, error) { return []byte("another value of " + argv[2] + "\n"), nil }); err != nil {
		t.Fatal(err)
	}
	if err := cfg.CheckReload(again); err != nil {
		t.Errorf("CheckReload() with other values = %v", err)
	}
	cfg.AlsoHide(again)
	if got := cfg.Hide("log: the value of one, another value of two"); got != "log: (hidden), (hidden)" {
		t.Errorf("after a reload, Hide() = %q", got)
	}
}

// TestInjectedSecrets: a secret that only the proxy of a plugin injects is read, too, and the plugin
// does not get it.
func TestInjectedSecrets(t *testing.T) {
	t.Parallel()
	cfg, err := load(t, fmt.Sprintf(`
		secret "printed" { exec = [%q] }
		secret "mine" { for = "user" }
		plugin "other" {
			tier = "read_only"
			path = "/bin/true"
			isolation_scope = "user"
			sandbox {
				network {
					mode  = "proxy"
					allow = ["api.example.com"]
					inject "api.example.com" {
						prefix = "Bearer "
						secret = "printed"
					}
					inject "*.example.org:8443" {
						header = "X-Key"
						secret = "mine"
					}
				}
			}
		}`, printer(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.ReadSecrets(func([]string) ([]byte, error) { return []byte("a printed value\n"), nil }); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Supervisor.Name == "other" })
	p := cfg.Plugins[i].Supervisor
	want := []string{"api.example.com Authorization Bearer a printed value false", "*.example.org:8443 X-Key  true"}
	var got []string
	for _, c := range p.Network.Inject {
		got = append(got, fmt.Sprint(c.Host, " ", c.Header, " ", c.Prefix+c.Value, " ", c.PerUser))
	}
	if !slices.Equal(got, want) || len(p.Secrets) != 0 || cfg.Hide("a printed value") != "(hidden)" {
		t.Errorf("the proxy injects %q and the plugin has %q, want %q and none", got, p.Secrets, want)
	}
}

// TestInjectedHeader: white space around a secret is trimmed; a secret that no header can hold is refused.
func TestInjectedHeader(t *testing.T) {
	t.Parallel()
	program := printer(t)
	const plugin = "plugin \"other\" {\n tier = \"read_only\"\n path = \"/bin/true\"\n sandbox {\n network {\n mode = \"proxy\"\n" +
		" inject \"api.example.com\" {\n prefix = \"Bearer \"\n secret = \"key\"\n }\n }\n }\n}\n"
	for value, valid := range map[string]bool{"a value": true, " a value\r\n\n": true, "two\nlines": false, "a\x7fb": false} {
		want := "Not a header: secret: the value of \"key\" contains characters that no header can have, such as a line break."
		if _, err := load(t, fmt.Sprintf("secret \"key\" {\n value = %s\n}\n", strings.ReplaceAll(strconv.Quote(value), `\x7f`, `\u007f`))+plugin); valid && err != nil || !valid && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: Load() = %v, want the mistake: %t", value, err, !valid)
		}
		cfg, err := load(t, fmt.Sprintf("secret \"key\" {\n exec = [%q]\n}\n", program)+plugin)
		if err != nil {
			t.Fatal(err)
		}
		err = cfg.ReadSecrets(func([]string) ([]byte, error) { return []byte(value), nil })
		if valid && err != nil || !valid && (err == nil || !strings.Contains(err.Error(), "printed characters that no header can have")) {
			t.Errorf("%q: ReadSecrets() = %v, want the mistake: %t", value, err, !valid)
		}
	}
}

// TestInjectNeedsProcessOfUser: a process of all users gets no secret of one.
func TestInjectNeedsProcessOfUser(t *testing.T) {
	t.Parallel()
	const secret = "secret \"mine\" {\n for = \"user\"\n}\n"
	const network = "network {\n mode = \"proxy\"\n inject \"api.example.com\" {\n secret = \"mine\"\n }\n}\n"
	for name, plugin := range map[string]string{
		"its own sandbox": "plugin \"other\" {\n tier = \"read_only\"\n path = \"/bin/true\"\n %s\n sandbox {\n" + network + "}\n}\n",
		"a named one":     "sandbox \"netted\" {\n" + network + "}\nplugin \"other\" {\n tier = \"read_only\"\n path = \"/bin/true\"\n %s\n sandbox = \"netted\"\n}\n",
	} {
		_, err := load(t, secret+fmt.Sprintf(plugin, ""))
		bad, ok := errors.AsType[*config.Error](err)
		if !ok || len(bad.Mistakes) != 1 || bad.Mistakes[0].Summary != "Secret of one user" ||
			!strings.Contains(bad.Mistakes[0].Detail, `one process of plugin "other" serves all users. Write isolation_scope = "user"`) || !strings.Contains(bad.Mistakes[0].Source, `secret = "mine"`) {
			t.Errorf("%s: Load() = %v, want a mistake at the secret of the inject block", name, err)
		}
		for _, scope := range []string{"user", "session"} {
			if _, err := load(t, secret+fmt.Sprintf(plugin, fmt.Sprintf("isolation_scope = %q", scope))); err != nil {
				t.Errorf("%s: Load() with the scope %s = %v", name, scope, err)
			}
		}
	}
}

// TestSecretCommandFails: each command without a value is a mistake at its place, which shows no other
// secret.
func TestSecretCommandFails(t *testing.T) {
	t.Parallel()
	program := printer(t)
	outputs := map[string]struct {
		output string
		err    error
		want   string
	}{
		"failed":  {"", errors.New("ended with exit status 1: no written out"), "ended with exit status 1: no (hidden)"},
		"empty":   {" \n", nil, "printed nothing"},
		"nul":     {"a\x00b", nil, "printed something else than a text: expected UTF-8 without a NUL character"},
		"invalid": {"a\xff", nil, "printed something else than a text: expected UTF-8 without a NUL character"},
		"good":    {"a value", nil, ""},
	}
	text, names := "secret \"three\" {\n value = \"written out\"\n}\n", []string{`"three"`}
	for name := range outputs {
		text += fmt.Sprintf("secret %q {\n exec = [%q, %q]\n}\n", name, program, name)
		names = append(names, fmt.Sprintf("%q", name))
	}
	cfg, err := load(t, text+requests(strings.Join(names, ", ")))
	if err != nil {
		t.Fatal(err)
	}
	err = cfg.ReadSecrets(func(argv []string) ([]byte, error) { return []byte(outputs[argv[1]].output), outputs[argv[1]].err })
	bad, ok := errors.AsType[*config.Error](err)
	if !ok || len(bad.Mistakes) != len(outputs)-1 {
		t.Fatalf("ReadSecrets() = %v, want %d mistakes", err, len(outputs)-1)
	}
	for name, o := range outputs {
		want := fmt.Sprintf("Secret %q: %s %s.", name, program, o.want)
		found := slices.IndexFunc(bad.Mistakes, func(m config.Mistake) bool { return m.Detail == want })
		if o.want != "" && (found < 0 || bad.Mistakes[found].Summary != "No value from a command" || !strings.Contains(bad.Mistakes[found].Source, `"`+name+`"`)) {
			t.Errorf("the mistakes are %+v, want %q", bad.Mistakes, want)
		}
	}
}

// TestSecretCommandMistakes reads commands that the host does not run.
func TestSecretCommandMistakes(t *testing.T) {
	t.Parallel()
	program, open := printer(t), printer(t)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	plain := printer(t)
	if err := os.Chmod(plain, 0o644); err != nil {
		t.Fatal(err)
	}
	for exec, want := range map[string]string{
		`["printer"]`:                           `Relative path: Expected the absolute path of a program, not "printer"`,
		`[]`:                                    "Missing program",
		`"` + program + `"`:                     `Expected a program and its arguments such as ["/usr/bin/pass", "show", "github"] for exec, not a string.`,
		`["` + program + `", 1]`:                "this element is not a string",
		`["` + program + `", "a\u0000"]`:        "An argument of a program cannot hold a NUL character.",
		`["` + program + `x"]`:                  "The host does not run this program: there is no " + program + "x; its directory contains printer.",
		`["` + open + `"]`:                      "can be written by others (mode -rwxrwxrwx)",
		`["` + plain + `"]`:                     "is not executable (mode -rw-r--r--): chmod +x",
		`["/bin"]`:                              "Unusable program",
		`["` + program + "\"]\n value = \"x\"":  `Two values: Secret "s" has a value (`,
		`["` + program + "\"]\n for = \"user\"": `config.hcl:4). Remove exec, or for.`,
	} {
		if _, err := load(t, "secret \"s\" {\n exec = "+exec+"\n}\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("exec = %s: Load() = %v, want %q", exec, err, want)
		}
	}
}
