package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/config"
)

// loadAlone reads a configuration of one file, config.hcl, next to the workspace ws. HOME is the
// directory of both, and /opt/tools/bin is in PATH.
func loadAlone(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	dir := write(t, map[string]string{"config.hcl": text})
	if err := os.Mkdir(filepath.Join(dir, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	return config.Load("config.hcl", config.LoadOptions{
		LookupEnv: environment(map[string]string{"HOME": dir, "PATH": "/usr/bin:/opt/tools/bin", "PATTERN": "s3cr3t.pem"}),
	})
}

// TestWarnings: unsafe settings that are easy to write, with their line and a remedy.
func TestWarnings(t *testing.T) {
	const plugin = "plugin \"a\" {\n tier = \"read_only\"\n}\n"
	commands := func(line string) string { return "workspace = \"ws\"\npolicy {\ncommands {\n" + line + "\n}\n}\n" }
	paths := func(line string) string { return "workspace = \"ws\"\npolicy {\npaths {\n" + line + "\n}\n}\n" }
	sandbox := func(lines string) string {
		return "workspace = \"ws\"\nsandbox \"default\" {\n" + lines + "\n}\n" + plugin
	}
	files := func(lines string) string { return sandbox("filesystem {\n" + lines + "\n}") }
	secrets := func(line string) string {
		return "workspace = \"ws\"\nsecret \"own\" {\nfor = \"user\"\n}\nplugin \"a\" {\ntier = \"read_only\"\nsecrets = [\"own\"]\n" + line + "\n"
	}
	rule := func(when string) string {
		return "workspace = \"ws\"\nauth {\nlocal_user = \"red\"\n}\npolicy {\nrule \"r\" {\ntools = [\"*\"]\nverdict = \"ask\"\nwhen = " + when + "\n}\n}\n"
	}
	token := func(line string) string {
		return "workspace = \"ws\"\nauth {\nlocal_user = \"red\"\ntoken \"t\" {\nsha256 = \"5b1e0f7a9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f\"\nuser = \"ada\"\nroles = [\"approver\"]\n" + line + "\n}\n}\n"
	}
	for _, tt := range []struct {
		name, text string
		want       []string // the line, and the warning after it
	}{
		{"shells", commands(`allow = ["bash *", "python3", "sudo *"]`), []string{
			`4: allow: "bash *" lets nearly any command run`, `4: allow: "python3" lets nearly any command run`, `4: allow: "sudo *" lets nearly any`,
		}},
		{"programs whose uses are judged", commands(`allow = ["find *", "git status", "npm run *", "make test"]`), nil},
		{"an expired token", token(`expires = "2020-01-01"`), []string{`8: token "t" has expired`}},
		{"one that has not", token(`expires = "2999-01-01"`), nil},
		{"risk", commands("risk {\nhigh = \"allow\"\n}"), []string{`5: risk: allowed programs may remove`}},
		{"lesser risk", commands("risk {\nmedium = \"allow\"\nhigh = \"ask\"\n}"), nil},
		{"options", commands(`deny = ["rm -rf", "git push --force"]`), []string{`4: deny: "rm -rf" does not cover`, `Deny "git push" without options`}},
		{"programs", commands(`deny = ["rm", "git push"]`), nil},
		{"variables", commands(`assign = ["PATH", "LD_PRELOAD", "PYTHONPATH"]`), []string{`4: assign: with "PATH"`, `4: assign: with "LD_PRELOAD"`, `4: assign: with "PYTHONPATH"`}},
		{"harmless variables", commands(`assign = ["LC_ALL", "TZ", "CI"]`), nil},
		{"redirects", commands(`write_redirects = ["Makefile", ".git/config", "/etc/crontab", "../x", "~/.bashrc"]`), []string{
			`write "Makefile" unasked, and programs run its content`, `write ".git/config" unasked, and programs run`, `write "/etc/crontab" unasked, and it is not in the workspace`, `write "../x" unasked, and it is not in`, `write "~/.bashrc" unasked, and it is not in`,
		}},
		{"harmless redirects", commands(`write_redirects = ["/dev/null", "out.txt", "build/log", "/tmp/log"]`), nil},

		{"top of the workspace", paths(`forbidden = [".env", "*.pem", "../secrets"]`), []string{
			`4: forbidden: ".env" covers only the top of the workspace. Begin it with "**/"`, `4: forbidden: "*.pem" covers only the top`, `4: forbidden: "../secrets" leads out`,
		}},
		{"clear patterns", paths(`forbidden = ["**/.env", "./private", "conf/x", "/etc/shadow"]`), nil},
		{"sensitive", paths(`sensitive = ["default", "*.tfvars", "!.env", "**/x"]`), []string{`4: sensitive: "*.tfvars" covers only the top`}},
		{"a secret", paths(`forbidden = [env("PATTERN")]`), []string{`4: forbidden: the value of this expression covers only the top`}},

		{"condition", rule(`caller.user == "rde" || contains(["ada", "red"], caller.user)`), []string{
			`9: "rde" is neither the user of a token nor local_user, so caller.user is never this name. Did you mean "red"?`, `9: "ada" is neither`,
		}},
		{"condition on another name", rule(`"red" != caller.user && caller.client == "rde"`), nil},
		{"approves", token(`approves = ["redd"]`), []string{`8: "redd" is neither the user of a token nor local_user, so it has no calls to approve. Did you mean "red"?`}},
		{"approves a user", token(`approves = ["red"]`), nil},

		{"the system", files(`write = ["/etc", "/usr/lib", "/usr"]`), []string{`4: write: "/etc" belongs to the system`, `4: write: "/usr/lib" belongs`, `4: write: "/usr" belongs`}},
		{"PATH", files(`write = ["/opt/tools"]`), []string{`4: write: "/opt/tools" is in PATH`}},
		{"sockets", files("write = [\"/var/run/docker.sock\"]\nread = [\"/run\", \"/srv/podman.sock\"]"), []string{
			`4: write: "/var/run/docker.sock" gives the plugin the socket of a container engine`, `5: read: "/run" gives`, `5: read: "/srv/podman.sock" gives`,
		}},
		{"written and executed", files("write = [\"/opt/a/b\"]\nexec = [\"system\", \"/opt/a\"]") + "plugin \"b\" {\n tier = \"read_only\"\n}\n", []string{
			`4: write: the plugin may also execute /opt/a`, // once for two plugins
		}},
		{"apart", files("write = [\"/opt/a\", \"/srv/reports\", \"/var/cache/lint\"]\nread = [\"/etc/ssl\", \"/opt/tools\"]\nexec = [\"system\", \"/opt/b\"]"), nil},
		{"nothing protected", files(`protect = []`), []string{`4: protect is empty`}},
		{"paths alone protected", files(`protect = ["conf"]`), []string{`4: protect lists only paths`}},
		{"nothing to protect", files("workspace = \"ro\"\nprotect = []"), nil},
		{"no sandbox", sandbox("isolation = \"off\"\nfilesystem {\nexec = [\"system\"]\n}"), []string{`3: isolation = "off" does not enforce`}},
		{"no sandbox wanted", sandbox(`isolation = "off"`), nil},
		{"environment", sandbox("env {\npass = [\"LD_PRELOAD\", \"AWS_SECRET_ACCESS_KEY\", \"GITHUB_TOKEN\"]\n}"), []string{
			`4: env: "LD_PRELOAD" makes programs`, `4: env: "AWS_SECRET_ACCESS_KEY" usually holds a secret`, `4: env: "GITHUB_TOKEN" usually`,
		}},
		{"a secret of users in one process", secrets("") + "}\n", []string{`7: secrets: each user sets "own", and one process of plugin "a" gets the values of all users`}},
		{"in a process for each", secrets(`isolation_scope = "user"`) + "}\n", nil},
		{"of a plugin that is off", secrets("enabled = false") + "}\n", nil},
		{"in one process, accepted", strings.Replace(secrets(""), "[\"own\"]", "[\"own\"] # accept: shared", 1) + "}\n", nil},
		{"harmless environment", sandbox("env {\npass = [\"LANG\", \"HTTPS_PROXY\", \"GIT_AUTHOR_NAME\", \"KEYBOARD\"]\n}"), nil},

		{"workspace of the system", `workspace = "/etc"`, []string{`1: workspace: /etc belongs to the system`}},
		{"home as workspace", `workspace = "."`, []string{`is or contains a home directory`}},
		{"home as workspace of what only reads", "workspace = \".\"\nstate_dir = \"/srv/state\"\n" + plugin, []string{`is or contains a home directory`}},
		{"home as workspace, accepted", "workspace = \".\" # accept: workspace\nstate_dir = \"/srv/state\"\n" + strings.Replace(plugin, "read_only", "side_effecting", 1), nil},
		{"workspace", `workspace = "ws"`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := loadAlone(t, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Warnings = slices.DeleteFunc(cfg.Warnings, func(w config.Warning) bool { return w.Word == "missing" }) // most paths here do not exist
			warnings := cfg.Unaccepted(nil, false)
			if len(warnings) != len(tt.want) {
				t.Fatalf("%d warnings, want %d:\n%s", len(warnings), len(tt.want), strings.Join(warnings, "\n"))
			}
			for i, got := range warnings {
				if !strings.HasPrefix(got, "config.hcl:") || !strings.Contains(got, tt.want[i]) || strings.Contains(got, "s3cr3t") {
					t.Errorf("warning %q, want one in config.hcl with %q, and no secret", got, tt.want[i])
				}
			}
		})
	}
}

// TestHomeIsNoWorkspace: tools that write need a word to have a home directory as workspace.
func TestHomeIsNoWorkspace(t *testing.T) {
	const (
		writes = "plugin \"a\" {\n tier = \"side_effecting\"\n%s}\n"
		home   = "workspace = \".\"\nstate_dir = \"/srv/state\"\n"
	)
	for name, tt := range map[string]struct {
		text    string
		refused bool
	}{
		"writes":           {home + fmt.Sprintf(writes, ""), true},
		"without sandbox":  {home + fmt.Sprintf(writes, " sandbox {\n  isolation = \"off\"\n }\n"), true},
		"another word":     {strings.Replace(home, "\".\"", "\".\" # accept: system", 1) + fmt.Sprintf(writes, ""), true},
		"only reads files": {home + fmt.Sprintf(writes, " sandbox {\n  filesystem {\n   workspace = \"ro\"\n  }\n }\n"), false},
		"disabled":         {home + fmt.Sprintf(writes, " enabled = false\n"), false},
	} {
		_, err := loadAlone(t, tt.text)
		if refused := err != nil && strings.Contains(err.Error(), "Home directory as workspace"); refused != tt.refused || err != nil && !refused {
			t.Errorf("%s: %v, want it refused: %v", name, err, tt.refused)
		}
	}
}

// TestWarningsAreSorted: those of several files, in their order.
func TestWarningsAreSorted(t *testing.T) {
	dir := write(t, map[string]string{
		"1.hcl": "workspace = \"/tmp\"\nsandbox \"x\" {\n filesystem {\n protect = []\n }\n}\n",
		"2.hcl": "policy {\n commands {\n allow = [\n\"sh\",\n\"awk *\",\n]\n deny = [\"rm -r\"]\n }\n}\n",
	})
	t.Chdir(dir)
	cfg, err := config.Load(".", config.LoadOptions{LookupEnv: environment(nil)})
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, w := range cfg.Unaccepted(nil, false) {
		place, _, _ := strings.Cut(w, ": ")
		places = append(places, place)
	}
	if diff := cmp.Diff([]string{"1.hcl:4", "2.hcl:4", "2.hcl:5", "2.hcl:7"}, places); diff != "" {
		t.Errorf("places of the warnings (-want +got):\n%s\n%s", diff, strings.Join(cfg.Unaccepted(nil, false), "\n"))
	}
}

// TestShippedConfigurationHasNoWarnings: users copy it.
func TestShippedConfigurationHasNoWarnings(t *testing.T) {
	text, err := os.ReadFile("../../../config.hcl")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(write(t, map[string]string{"config.hcl": string(text)})+"/config.hcl", config.LoadOptions{LookupEnv: environment(map[string]string{
		"HOME": "/home/ada", "PATH": "/usr/local/bin:/usr/bin:/bin",
	})})
	if err != nil || len(cfg.Unaccepted(nil, false)) > 0 {
		t.Errorf("Load(config.hcl) = %v, and the warnings:\n%s", err, strings.Join(cfg.Unaccepted(nil, false), "\n"))
	}
}

// TestNeverEffective: a setting that can have no effect is a mistake.
func TestNeverEffective(t *testing.T) {
	for text, want := range map[string]string{
		"policy {\npaths {\nforbidden = [\"$HOME/.ssh\"]\n}\n}":                             "config.hcl:4: Not expanded: ",
		"policy {\npaths {\nsensitive = [\"default\", \"!$HOME\"]\n}\n}":                    "config.hcl:4: Not expanded: ",
		"sandbox \"s\" {\nfilesystem {\nread = [\"$${HOME}/x\"]\n}\n}":                      "config.hcl:4: Not expanded: ",
		"policy {\ncommands {\nassign = [\"GIT_EXTERNAL_DIFF\"]\n}\n}":                      "config.hcl:4: Useless variable: ",
		"plugin \"p\" {\ntier = \"read_only\"\nenabled = yes\n}":                            `config.hcl:4: Not true or false: Write true, or a text in quotes: "yes".`,
		"policy {\nmode = supervised\n}":                                                    `config.hcl:3: Missing quotes: Write a text in quotes: "supervised".`,
		"policy {\ncommands {\nallow = [ls]\n}\n}":                                          `config.hcl:4: Missing quotes: Write a text in quotes: "ls".`,
		"plugin {\ntier = \"read_only\"\n}":                                                 `config.hcl:2: Missing name for plugin: A plugin block needs a name. Write it in quotes: plugin "name" {`,
		"locals {\na = qqqqq(1)\n}":                                                         `There is no function named "qqqqq". There are coalesce, compact, `,
		"policy {\nrule \"r\" {\ntools = [\"*\"]\nverdict = \"ask\"\nwhen = qqqqq(1)\n}\n}": "A condition cannot call qqqqq. There are alltrue, anytrue, ",
	} {
		_, err := loadAlone(t, "workspace = \"ws\"\n"+text)
		if bad, ok := errors.AsType[*config.Error](err); !ok || !strings.Contains(bad.Error(), want) {
			t.Errorf("%s\nLoad = %v, want a mistake with %q", text, err, want)
		}
	}
}
