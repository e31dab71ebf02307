package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// shippedPolicy is the policy that the repository ships, with a change in its text.
func shippedPolicy(t *testing.T, old, changed string) (*policy.Rules, string) {
	t.Helper()
	shipped, err := os.ReadFile("../../../config.hcl")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(shipped), old, changed, 1)
	if old != changed && text == string(shipped) {
		t.Fatalf("config.hcl does not hold %q", old)
	}
	dir := write(t, map[string]string{"config.hcl": text})
	cfg, err := config.Load(filepath.Join(dir, "config.hcl"), config.LoadOptions{LookupEnv: environment(nil)})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(cfg.Policy)
	if err != nil {
		t.Fatal(err)
	}
	return rules, cfg.Workspace.Shared
}

// run returns the policy's decision about a command in a folder.
func run(rules *policy.Rules, folder, line string) policy.Decision {
	return rules.Decide(policy.Input{
		Plugin: "shell", Tool: "shell_exec", Tier: tool.Privileged, Folders: []string{folder},
		Commands: []policy.Command{{Line: command.Parse(line, rules.Reading([]string{folder}))}},
	})
}

// TestShippedSensitiveCommands: the shipped configuration's verdicts for commands that read
// sensitive files, and for ordinary ones.
func TestShippedSensitiveCommands(t *testing.T) {
	t.Parallel()
	rules, folder := shippedPolicy(t, "", "")
	unasked, folderUnasked := shippedPolicy(t, `privileged = "confirm"`, `privileged = "allow"`)
	autonomous, _ := shippedPolicy(t, `mode             = "supervised"`, `mode             = "autonomous"`)
	for _, line := range []string{
		"cat .env", "cat ./a/../.env", `cat ".e"nv`, `cat \.env`, "cat .ENV", "cat $PWD/.env", `cat "$PWD/.env"`, "cat < .env", "head credentials.json",
		"tail -n 1 server.pem", "wc -l ~/.ssh/id_rsa", "grep KEY .env", "grep -f.env x", "cat .e*", "cat .en[v]", "cat {a,.env}", "cd .ssh && cat config",
		"for f in .env; do cat $f; done", "f=.env; cat $f", "cat ${x:-.env}", "cat $(echo .env)", "xargs cat <<< .env", "git show HEAD:.env", "git show :.env",
		"git log -p -- .env", "git -C sub diff .env", "git diff --no-index a .env", "curl -d @.env http://localhost", "install --mode=600 src/.env x", "bash -c 'cat .env'",
		"env cat .env", "echo .env | xargs cat", "cat <(cat .env)", "cat <<E\n$(cat .env)\nE", "cat /etc/shadow", "[ -f .env ] && cat < .env",
		"rg --hidden -g '.env*' KEY", "cp .env x", "ls *.pem", "cat .env.local", "cat .aws/credentials", "cat .docker/config.json", "export X=.env",
	} {
		for name, rules := range map[string]*policy.Rules{"supervised": rules, "autonomous": autonomous} {
			if d := run(rules, folder, line); d.Verdict != policy.Confirm {
				t.Errorf("%s: %q is decided %v by %s, want confirm", name, line, d.Verdict, d.Rule)
			}
		}
		if d := run(autonomous, folder, line); d.NoGrant == "" {
			t.Errorf("%q is decided %v by %s, which a grant may answer", line, d.Verdict, d.Rule)
		}
	}
	for _, line := range []string{
		"grep -r KEY .", "grep KEY -nr", "grep --recurs KEY", "grep -d recurse KEY .", "grep --directories=recurse KEY .", "grep KEY *", "grep KEY .*", "cat *", "cat sub/*",
		"rg --hidden KEY", "rg -u KEY", "rg -uuu KEY", "rg -n. KEY", "rg --no-ignore-vcs KEY", "find . -type f -exec cat {} +", "find . | xargs cat",
		"tar c .", "cp -r . /tmp/x", "diff -r a b", "git grep KEY", "git archive HEAD", "env grep -r KEY .", "if true; then grep -R KEY; fi",
	} {
		if d := run(rules, folder, line); d.Verdict < policy.Ask {
			t.Errorf("%q is decided %v by %s, want ask or stricter", line, d.Verdict, d.Rule)
		}
		// Even if the configuration allows all commands without a rule of their own.
		if d := run(unasked, folderUnasked, line); d.Verdict < policy.Ask {
			t.Errorf("all are allowed: %q is decided %v by %s, want ask or stricter", line, d.Verdict, d.Rule)
		}
	}
	for _, line := range []string{
		"git log --oneline -5", "git diff HEAD~1", "ls -la && pwd", "cat cobra/go.mod | grep module", "git status --porcelain", "grep -n foo a.go", "grep '.*key' a.go",
		"cat .env.example", "find . -name '*.go'", "head -c 100 f", "echo done", `echo "${HOME}"`, `echo "x=$HOME"`, "cat environment.go", "wc -l id_generator.go",
	} {
		if d := run(rules, folder, line); d.Verdict != policy.Allow {
			t.Errorf("%q is decided %v by %s, want allow", line, d.Verdict, d.Rule)
		}
	}
	for _, line := range []string{"ls *.go", "for f in *.go; do wc -l $f; done", "rm -rf build", "rg -n foo", "rg foo -g '*.go'", `git commit -m "read .env"`} {
		if d := run(autonomous, folder, line); strings.Contains(d.Rule, "sensitive") {
			t.Errorf("autonomous: %q is decided %v by %s, want it not to be sensitive", line, d.Verdict, d.Rule)
		}
	}
}

// TestSensitivePaths: the verdicts for paths of calls, and the effect of the configuration.
func TestSensitivePaths(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, paths string // the block
		path        string // relative to the workspace, or absolute
		want        policy.Verdict
	}{
		{"built in", "", ".env", policy.Confirm},
		{"in a directory", "", "a/.aws/credentials", policy.Confirm},
		{"case", "", "a/.Env", policy.Confirm},
		{"another block", `paths { workspace_only = true }`, ".env", policy.Confirm},
		{"not an example", "", ".env.example", policy.Allow},
		{"not others", "", "main.go", policy.Allow},
		{"elsewhere", "", "/etc/shadow", policy.Deny},
		{"elsewhere, but given to the plugin", "", "/etc/ssh/ssh_host_rsa_key", policy.Confirm},
		{"denied", `paths { sensitive_verdict = "deny" }`, ".env", policy.Deny},
		{"asked", `paths { sensitive_verdict = "ask" }`, ".env", policy.Ask},
		{"allowed", `paths { sensitive_verdict = "allow" }`, ".env", policy.Allow},
		{"none is", `paths { sensitive = [] }`, ".env", policy.Allow},
		{"others", `paths { sensitive = ["**/*.tfvars"] }`, ".env", policy.Allow},
		{"others", `paths { sensitive = ["**/*.tfvars"] }`, "x.tfvars", policy.Confirm},
		{"further ones", `paths { sensitive = ["default", "private"] }`, "private/x", policy.Confirm},
		{"further ones, of the workspace", `paths { sensitive = ["default", "private"] }`, "a/private/x", policy.Allow},
		{"but one", `paths { sensitive = ["default", "!**/test.pem"] }`, "a/test.pem", policy.Allow},
		{"but one", `paths { sensitive = ["default", "!**/test.pem"] }`, "a/x.pem", policy.Confirm},
		{"not softened", "mode = \"autonomous\"", ".env", policy.Confirm},
		{"nor by a rule", "rule \"r\" {\n tools = [\"*\"]\n verdict = \"allow\"\n}", ".env", policy.Confirm},
		{"a rule denies", "rule \"r\" {\n tools = [\"*\"]\n verdict = \"deny\"\n}", ".env", policy.Deny},
	} {
		cfg, err := load(t, "policy {\n"+tt.paths+"\n}")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		cfg.Policy.Reach = map[string][]string{"p": {"/etc/ssh"}}
		rules, err := policy.New(cfg.Policy)
		if err != nil {
			t.Fatal(err)
		}
		at := tt.path
		if !filepath.IsAbs(at) {
			at = filepath.Join(cfg.Workspace.Shared, at)
		}
		d := rules.Decide(policy.Input{
			Plugin: "p", Tool: "read", Tier: tool.ReadOnly, Folders: []string{cfg.Workspace.Shared}, Paths: []policy.Path{{Name: tt.path, Absolute: at}},
		})
		if d.Verdict != tt.want {
			t.Errorf("%s: %s is decided %v by %s, want %v", tt.name, tt.path, d.Verdict, d.Rule, tt.want)
		}
		if want := "Path blocked by security policy: " + tt.path; d.Verdict == policy.Deny && strings.Contains(tt.paths, "sensitive") && d.Reason != want {
			t.Errorf("%s: the reason is %q, want %q", tt.name, d.Reason, want)
		}
	}
	for text, want := range map[string]string{
		`sensitive = ["a/**/b"]`:                        "Not a pattern",
		`sensitive = [""]`:                              "Not a pattern",
		`sensitive = ["~/.x"]`:                          "Relative pattern",
		`sensitive = ["**/.env", "**/.env"]`:            "Duplicate entry",
		`sensitive_verdict = "never"`:                   "Unknown verdict",
		`sensitive = "default"`:                         "",
		`sensitive = ["default", "!**/.env", "/srv/x"]`: "none",
	} {
		_, err := load(t, "policy {\n paths {\n"+text+"\n}\n}")
		if want == "none" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Load returns %v, want %q", text, err, want)
		}
	}
}

// TestSensitiveTurnedOff: by its verdict as by an empty list, plugins get no pattern.
func TestSensitiveTurnedOff(t *testing.T) {
	t.Parallel()
	for paths, off := range map[string]bool{
		``: false, `sensitive_verdict = "ask"`: false, `sensitive_verdict = "deny"`: false,
		`sensitive_verdict = "allow"`: true, `sensitive = []`: true,
		"sensitive = [\".env\"]\nsensitive_verdict = \"allow\"": true,
	} {
		cfg, err := load(t, "policy {\n paths {\n"+paths+"\n}\n}")
		if err != nil {
			t.Fatal(err)
		}
		rules, err := policy.New(cfg.Policy)
		if err != nil {
			t.Fatal(err)
		}
		if got := rules.Sensitive(); got == nil || (len(got) == 0) != off {
			t.Errorf("%s: plugins get the patterns %#v, want none: %v", paths, got, off)
		}
		file := filepath.Join(cfg.Workspace.Shared, ".env")
		if got := rules.SensitiveOf(&policy.Input{Folders: []string{cfg.Workspace.Shared}, Paths: []policy.Path{{Name: ".env", Absolute: file}}}); (len(got) == 0) != off {
			t.Errorf("%s: a call of .env names the sensitive files %q, want none: %v", paths, got, off)
		}
	}
}

// TestForbiddenBehindLinks: a pattern of a path that leads through links holds where they
// lead, too, and each plugin gets both.
func TestForbiddenBehindLinks(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"config.hcl": `workspace = "link"
state_dir = "state"
policy {
  paths {
    forbidden = ["./private", "conf/*.key", "**/.ssh"]
  }
}
plugin "p" {
  tier = "read_only"
}`})
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("data", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(filepath.Join(dir, "config.hcl"), config.LoadOptions{LookupEnv: environment(nil)})
	if err != nil {
		t.Fatal(err)
	}
	place, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{dir + "/link/private", place + "/data/private", dir + "/link/conf/*.key", place + "/data/conf/*.key", "**/.ssh"}
	for _, got := range [][]string{cfg.Policy.Paths.Patterns(), cfg.Plugins[0].Supervisor.Forbidden} {
		if !slices.Equal(got, want) {
			t.Errorf("the patterns are %q, want %q", got, want)
		}
	}
}

// TestPatternsOfAnOddWorkspace: a pattern for the workspace applies only there, even if the
// workspace has an odd name.
func TestPatternsOfAnOddWorkspace(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"w[s]", "w[s", "w*", "**", "w?", `w\s`, `w\`, "{a,b}", "{", "}", "!w", "w[S]. ", `w\.`, "plain"} {
		dir := write(t, map[string]string{"config.hcl": fmt.Sprintf(`workspace = %q
state_dir = "state"
policy {
  paths {
    sensitive = ["conf/*.tfvars", "keys"]
    forbidden = ["private/*.txt", "closed"]
  }
}
plugin "p" {
  tier = "read_only"
}`, folder)})
		for _, name := range []string{folder, "ws", "other"} {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		cfg, err := config.Load(filepath.Join(dir, "config.hcl"), config.LoadOptions{LookupEnv: environment(nil)})
		if err != nil {
			t.Errorf("%q: %v", folder, err)
			continue
		}
		rules, err := policy.New(cfg.Policy)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]policy.Verdict{
			"conf/live.tfvars": policy.Confirm, "keys/a": policy.Confirm, "private/a.txt": policy.Deny, "closed": policy.Deny,
			"live.tfvars": policy.Allow, "a/closed": policy.Allow,
		} {
			for _, below := range []string{folder, "ws", "other"} {
				if below != folder {
					want = policy.Allow
				}
				d := rules.Decide(policy.Input{
					Plugin: "p", Tool: "read", Tier: tool.ReadOnly, Folders: []string{dir},
					Paths: []policy.Path{{Name: name, Absolute: filepath.Join(dir, below, name)}},
				})
				if d.Verdict != want {
					t.Errorf("workspace %q: %s/%s is decided %v by %s, want %v", folder, below, name, d.Verdict, d.Rule, want)
				}
			}
		}
	}
}

// TestSensitiveRevision: another list is another policy.
func TestSensitiveRevision(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range []policy.Sensitive{{}, {Patterns: []string{}}, {Patterns: []string{".env"}}, {Verdict: policy.Deny}} {
		rules, err := policy.New(policy.Options{Paths: policy.Paths{Sensitive: s}})
		if err != nil {
			t.Fatal(err)
		}
		seen[rules.Revision()] = true
	}
	if len(seen) != 4 {
		t.Errorf("4 policies have %d revisions", len(seen))
	}
}
