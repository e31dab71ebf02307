package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// TestSecretsStayHidden puts values of env and file where they are wrong, in
// every way in which the reason could quote them.
func TestSecretsStayHidden(t *testing.T) {
	const fromEnv, fromFile = "hunter2-hunter2", "correct horse"
	for _, text := range []string{
		`tier = env("KEY")`,
		`tier = local.key`,
		`tier = "x${local.key}"`,
		`tier = upper(trimspace(file("key.txt")))`,
		`path = "../${local.key}"`,
		`sandbox = local.key`,
		`sha256 = local.key`,
		`claims = local.key`,
		`start = file("key.txt")`,
		`idle_timeout = local.key`,
		`enabled = local.key`,
		`tier = local.object[local.key]`,
		`tier = local.object[trimspace(file("key.txt"))]`,
		`tier = local.list[local.key]`,
		`tier = lookup(local.object, local.key)`,
		`tier = local.key.name`,
		`tier = local.key + 1`,
		`tier = local.key ? "a" : "b"`,
		`tier = { for k in [local.key, local.key] : k => k }`,
		`tier = { for k in [1, 2] : trimspace(file("key.txt")) => k }`,
		`tier = [for k in local.key : k]`,
		`tier = format("%d", local.key)`,
		`tier = format(local.key, 1)`,
		`tier = format("%z", local.key)`,
		`tier = substr(local.key, local.key, 1)`,
		`tier = join(local.key, local.key)`,
		`tier = merge(local.key, {})`,
		`tier = min(local.key)`,
		`tier = env(local.key)`,
		`tier = file(local.key)`,
		`tier = pathexpand("~/${local.key}")`,
		"tool \"x\" {\n tier = local.key\n timeout = local.key\n max_output = local.key\n aliases = [local.key]\n enabled = local.key\n }",
		"sandbox {\n limits {\n memory = local.key\n open_files = local.key\n core = local.key\n cpu_time = local.key\n }\n env {\n pass = [\"${local.key}=\"]\n }\n }",
		"tier = \"read_only\"\n config {\n mode = local.key\n max_read = local.key\n patience = file(\"key.txt\")\n depth = local.key\n hidden = local.key\n cache = local.key\n }",
		"tier = \"read_only\"\n config {\n cache = { (local.key) = 1 }\n labels = { (local.key) = 1 }\n }",
		"tier = \"read_only\"\n config {\n (local.key) = 1\n }",
	} {
		dir := write(t, map[string]string{
			"key.txt": fromFile + "\n",
			"config.hcl": "workspace = \".\"\nlocals {\n key = env(\"KEY\")\n object = { a = 1 }\n list = [1]\n}\n" +
				"plugin \"p\" {\n" + text + "\n}\n",
		})
		_, err := config.Load(dir, config.LoadOptions{
			LookupEnv:      environment(map[string]string{"KEY": fromEnv}),
			SettingsSchema: func(string, supervisor.Plugin) ([]byte, bool) { return []byte(settingsSchema), true },
		})
		var bad *config.Error
		if !errors.As(err, &bad) {
			t.Errorf("Load with %s: error %v, want *config.Error", text, err)
			continue
		}
		var shown bytes.Buffer
		if err := errors.Join(bad.WriteText(&shown, true), json.NewEncoder(&shown).Encode(bad)); err != nil {
			t.Fatal(err)
		}
		shown.WriteString(bad.Error())
		for _, secret := range []string{fromEnv, fromFile, strings.ToUpper(fromFile)} {
			if strings.Contains(shown.String(), secret) {
				t.Errorf("Load with %s shows %q:\n%s", text, secret, shown.String())
			}
		}
	}
}

// TestHidingIsNeeded is the control of the test above: HCL itself quotes the
// key of a for expression, so a value that is no secret appears.
func TestHidingIsNeeded(t *testing.T) {
	dir := write(t, map[string]string{"config.hcl": `workspace = { for k in ["plain", "plain"] : k => k }`})
	_, err := config.Load(dir, config.LoadOptions{LookupEnv: environment(nil)})
	if err == nil || !strings.Contains(err.Error(), `produced the key "plain"`) {
		t.Errorf("Load error = %v, want one that quotes the key", err)
	}
}

func TestSecrets(t *testing.T) {
	dir := write(t, map[string]string{
		"key.txt":    "from the file\n",
		"config.hcl": "workspace = \".\"\nlocals {\n a = env(\"KEY\")\n b = env(\"PIN\", \"\")\n c = env(\"NONE\", \"default\")\n d = file(\"key.txt\")\n e = env(\"KEY\")\n}\n",
	})
	cfg, err := config.Load(filepath.Join(dir, "config.hcl"), config.LoadOptions{
		LookupEnv: environment(map[string]string{"KEY": "from env", "PIN": "123"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"from env", "from the file\n", "from the file"}
	for _, w := range want {
		if !strings.Contains(strings.Join(cfg.Secrets, "|"), w) {
			t.Errorf("Secrets = %q, want %q among them", cfg.Secrets, w)
		}
	}
	if len(cfg.Secrets) != len(want) {
		t.Errorf("Secrets = %q, want %d", cfg.Secrets, len(want))
	}
}

func TestFileIsBounded(t *testing.T) {
	dir := write(t, map[string]string{"config.hcl": "workspace = \".\"\nlocals {\n big = file(\"big\")\n dir = file(\".\")\n}\n"})
	if err := os.WriteFile(filepath.Join(dir, "big"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "big"), 10<<30); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(dir, config.LoadOptions{LookupEnv: environment(nil)})
	var bad *config.Error
	if !errors.As(err, &bad) || len(bad.Mistakes) != 2 {
		t.Fatalf("Load error = %v, want two mistakes", err)
	}
	for i, want := range []string{"larger than 1048576 bytes", "not a regular file"} {
		if got := bad.Mistakes[i].Detail; !strings.Contains(got, want) {
			t.Errorf("mistake %d = %q, want one with %q", i, got, want)
		}
	}
}

// TestGrantedSecrets: a plugin has only the secrets that its block lists; literal values are
// hidden, too, and their lines.
func TestGrantedSecrets(t *testing.T) {
	dir := write(t, map[string]string{"config.hcl": `workspace = "."
state_dir = "` + filepath.ToSlash(t.TempDir()) + `/state"
secret "one" {
  value = env("KEY")
}
secret "two" {
  value = "written out"
}
secret "key" {
  value = "BEGIN\n  a line of it  \r\nEND\n"
}
plugin "a" {
  path    = "/bin/a"
  tier    = "read_only"
  secrets = ["one"]
}
plugin "b" {
  path = "/bin/b"
  tier = "read_only"
}
`})
	cfg, err := config.Load(filepath.Join(dir, "config.hcl"), config.LoadOptions{LookupEnv: func(string) (string, bool) { return "hunter2-hunter2", true }})
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Plugins[0].Supervisor.Secrets; len(got) != 1 || got["one"] != "hunter2-hunter2" {
		t.Errorf("the plugin that is granted one secret has %q", got)
	}
	if got := cfg.Plugins[1].Supervisor.Secrets; len(got) != 0 {
		t.Errorf("the plugin that is granted none has %q", got)
	}
	if got := cfg.Hide("written out, hunter2-hunter2"); got != "(hidden), (hidden)" {
		t.Errorf("Hide = %q", got)
	}
	if got := cfg.Hide("log: BEGIN\nlog: a line of it\nlog: END\n"); got != "log: BEGIN\nlog: (hidden)\nlog: END\n" {
		t.Errorf("Hide of a value line by line = %q; want the line hidden, but not words that stand anywhere", got)
	}
}

// TestSecretsThatUsersSet: a secret block has a value, or each user sets one.
func TestSecretsThatUsersSet(t *testing.T) {
	const plugin = "plugin \"a\" {\n path = \"/bin/a\"\n tier = \"read_only\"\n secrets = [\"one\", \"own\"]\n}\n"
	cfg, err := load(t, "secret \"one\" {\n value = \"written out\"\n}\nsecret \"own\" {\n for = \"user\"\n}\n"+plugin)
	if err != nil {
		t.Fatal(err)
	}
	if p := cfg.Plugins[0].Supervisor; len(p.Secrets) != 1 || len(p.UserSecrets) != 1 || p.UserSecrets[0] != "own" {
		t.Errorf("the plugin has %v and %v", p.Secrets, p.UserSecrets)
	}
	for text, want := range map[string]string{
		"secret \"own\" {\n for = \"user\"\n value = \"x\"\n}": `Two values: Each user sets a value for secret "own"`,
		"secret \"own\" {\n for = \"users\"\n}":                `Expected "user" for for, not "users". Did you mean "user"?`,
		"secret \"own\" {\n}":                                  `or for = "user" if each user sets one`,
		"secret \"own\" {\n for = \"user\"\n}\nplugin \"a\" {\n path = \"/bin/a\"\n tier = \"read_only\"\n secrets = [\"own\", \"own\"]\n}": "Duplicate secret",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Load() = %v, want %q", text, err, want)
		}
	}
}
