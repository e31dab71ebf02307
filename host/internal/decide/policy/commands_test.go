package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/sdk/tool"
)

// shellCases is the table of commands and their expected verdicts.
type shellCases struct {
	Policy struct {
		Workspace string
		Allow     []string
		Deny      []string
		Redirects []string `json:"redirect_write_auto"`
		Assign    []string `json:"safe_env_assign"`
	}
	Cases []struct {
		ID, Command, Why string
		Expect           Verdict
		Risk             command.Risk
	}
}

// readCases reads a table of cases.
func readCases(tb testing.TB, name string) []byte {
	tb.Helper()
	dir := os.Getenv("TOOLHOST_CASES")
	if dir == "" {
		dir = filepath.Join("testdata", "cases")
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func readShellCases(tb testing.TB) (shellCases, *Commands) {
	tb.Helper()
	var table shellCases
	if err := json.Unmarshal(readCases(tb, "shell.json"), &table); err != nil {
		tb.Fatal(err)
	}
	if len(table.Cases) == 0 {
		tb.Fatal("the table is empty")
	}
	c := &Commands{Assign: table.Policy.Assign, WriteRedirects: table.Policy.Redirects}
	for _, list := range []struct {
		from []string
		to   *[]CommandRule
	}{{table.Policy.Allow, &c.Allow}, {table.Policy.Deny, &c.Deny}} {
		for _, rule := range list.from {
			*list.to = append(*list.to, CommandRule{Words: strings.Fields(rule)})
		}
	}
	return table, c
}

func TestCasesShell(t *testing.T) {
	table, c := readShellCases(t)
	for _, tt := range table.Cases {
		t.Run(tt.ID, func(t *testing.T) {
			line := command.Parse(tt.Command, command.Options{Workspace: table.Policy.Workspace, Assign: c.Assign, WriteRedirects: c.WriteRedirects})
			d, _ := c.judge(Command{Line: line}, Level{})
			if d.Verdict < tt.Expect || tt.Expect == Allow && d.Verdict != Allow {
				t.Errorf("%q: %v by %s, want %v (%s)\n%+v", tt.Command, d.Verdict, d.Rule, tt.Expect, tt.Why, line)
			}
			if line.Risk() != tt.Risk {
				t.Errorf("%q: risk %v, want %v\n%+v", tt.Command, line.Risk(), tt.Risk, line)
			}
		})
	}
	t.Logf("%d cases", len(table.Cases))
}

// TestCommandsOrder: the effect of command lists next to the other levels.
func TestCommandsOrder(t *testing.T) {
	lists := func() *Commands {
		return &Commands{Allow: []CommandRule{{Words: []string{"ls"}}, {Words: []string{"make", "test"}}, {Words: []string{"npm", "run", "*"}}, {Words: []string{"sort"}}}}
	}
	for _, tt := range []struct {
		name, command, dir string
		change             func(*Options)
		script             bool
		input              string // of the command
		want               Verdict
	}{
		{name: "allowed goes before the tier", command: "ls", want: Allow},
		{name: "the very words", command: "make test", want: Allow},
		{name: "not others", command: "make test X=/", want: Confirm},
		{name: "nor a part of them", command: "make", want: Confirm},
		{name: "further words", command: "npm run lint -- --fix", want: Allow},
		{name: "not unknown ones", command: "npm run $X", want: Confirm},
		{name: "a known program's other options", command: "sort -o x y", want: Confirm},
		{name: "unlisted", command: "npm test", want: Ask},
		{name: "a module that tests", command: "python3 -m unittest -v", want: Ask},
		{name: "with what is known only when it runs", command: "python3 -m pytest $X", want: Confirm},
		{name: "another module", command: "python3 -m http.server", want: Confirm},
		{name: "a script", command: "python3 unittest.py", want: Confirm},
		{name: "unlisted is denied", command: "npm test", change: func(o *Options) { o.Commands.Unlisted = Deny }, want: Deny},
		{name: "high risk", command: "rm x", want: Confirm},
		{name: "high risk is blocked", command: "rm x", change: func(o *Options) { o.Commands.BlockHighRisk = true }, want: Deny},
		{name: "a level by risk", command: "rm x", change: func(o *Options) { o.Commands.Risk = map[command.Risk]Verdict{command.High: Ask} }, want: Ask},
		{name: "the tool's own confirm", command: "ls", change: toolLevel(Confirm), want: Confirm},
		{name: "the tool's own deny", command: "ls", change: toolLevel(Deny), want: Deny},
		{name: "the tool's own ask", command: "ls", change: toolLevel(Ask), want: Allow},
		{name: "autonomous", command: "npm test", change: func(o *Options) { o.Mode = Autonomous }, want: Allow},
		{name: "autonomous, but of high risk", command: "rm x", change: func(o *Options) { o.Mode = Autonomous }, want: Confirm},
		{name: "autonomous, but of high risk that asks", command: "rm x", change: func(o *Options) {
			o.Mode, o.Commands.Risk = Autonomous, map[command.Risk]Verdict{command.High: Ask}
		}, want: Ask},
		{name: "autonomous, and of high risk that is allowed", command: "rm x", change: func(o *Options) {
			o.Mode, o.Commands.Risk = Autonomous, map[command.Risk]Verdict{command.High: Allow}
		}, want: Allow},
		{name: "autonomous without lists, of high risk", command: "rm x", change: func(o *Options) {
			toolLevel(Ask)(o)
			o.Mode, o.Commands = Autonomous, nil
		}, want: Ask},
		{name: "autonomous, but blocked", command: "rm x", change: func(o *Options) { o.Mode, o.Commands.BlockHighRisk = Autonomous, true }, want: Deny},
		{name: "autonomous, but the tool's own confirm", command: "rm x", change: func(o *Options) { o.Mode = Autonomous; toolLevel(Confirm)(o) }, want: Confirm},
		{name: "autonomous, but nobody can read it all", command: "ls '", change: func(o *Options) { o.Mode = Autonomous }, want: Confirm},
		{name: "autonomous, but too long", command: "ls #" + strings.Repeat("x", command.MaxLength), change: func(o *Options) { o.Mode = Autonomous }, want: Confirm},
		{name: "autonomous, but too much", command: strings.Repeat("a;", 2000), change: func(o *Options) { o.Mode = Autonomous }, want: Confirm},
		{name: "autonomous, but too deep", command: strings.Repeat("env nice ", 9) + "ls", change: func(o *Options) { o.Mode = Autonomous }, want: Confirm},
		{name: "autonomous, but too many constructs", command: "ls #" + strings.Repeat("(", 600), change: func(o *Options) { o.Mode = Autonomous }, want: Confirm},
		{name: "autonomous, but bash reads a negated subshell", command: "!(sudo ls)", change: func(o *Options) { o.Mode = Autonomous }, want: Confirm},
		{name: "autonomous, but bash reads another end", command: "ls <<E\n$(ls\nE\nsudo ls\n)\nE", change: func(o *Options) { o.Mode = Autonomous }, want: Confirm},
		{name: "allowed, but bash reads a quote as a character", command: `echo "${x:-'$(rm x)'}"`, change: func(o *Options) { o.Commands.Allow = append(o.Commands.Allow, CommandRule{Words: []string{"echo"}}) }, want: Confirm},
		{name: "the tool is allowed, but nobody can read it all", command: "env sudo reboot\n'", change: func(o *Options) { o.Commands = nil; toolLevel(Allow)(o) }, want: Confirm},
		{name: "in another directory", command: "cat shadow", dir: "/etc", want: Confirm},
		{name: "in a directory of the workspace", command: "cat shadow", dir: "/ws/src", change: func(o *Options) { o.Commands.Allow = append(o.Commands.Allow, CommandRule{Words: []string{"cat"}}) }, want: Allow},
		{name: "a denied program behind a wrapper behind a redirection", command: `>/dev/null time -p \git clean`, change: denied("git clean"), want: Deny},
		{name: "a denied program behind a negation alone", command: "! # ls\n/usr/bin/'git' clean", change: denied("git clean"), want: Deny},
		{name: "a denied program behind two negations", command: "! ! git clean", change: denied("git clean"), want: Deny},
		{name: "a denied program in a document without an end", command: "cat <<E\n$(gi\\\nt clean)\nE # ls", change: denied("git clean"), want: Deny},
		{name: "a denied program too deep in others", command: strings.Repeat("env nice ", 9) + "git clean", change: denied("git clean"), want: Deny},
		{name: "a denied program too deep in shells", command: strings.Repeat("eval ", 12) + `"git clean"`, change: denied("git clean"), want: Deny},
		{name: "a denied program and its option behind two negations", command: "! ! git -C r clean", change: denied("git clean"), want: Deny},
		{name: "a denied program beside too many constructs", command: "git --no-pager clean; echo " + strings.Repeat("(", 600), change: denied("git clean"), want: Deny},
		{name: "a denied program behind too many commands", command: strings.Repeat("true;", 3000) + "git clean", change: denied("git clean"), want: Deny},
		{name: "another command of a program behind too many", command: strings.Repeat("true;", 3000) + "git status; make clean", change: denied("git clean"), want: Confirm},
		{name: "another command of a denied program, that cannot be read", command: "! ! git status", change: denied("git clean"), want: Confirm},
		{name: "a denied command behind unknown options", command: "git -c a=b clean", change: denied("git clean"), want: Deny},
		{name: "a denied command behind an unknown directory", command: "git --git-dir=.git clean -f", change: denied("git clean"), want: Deny},
		{name: "a build", command: "make test X=/", change: buildsAllowed, want: Allow},
		{name: "a build of known uses", command: "go build ./... && go vet ./...", change: buildsAllowed, want: Allow},
		{name: "a build of unknown uses", command: "go test -exec ./x .", change: buildsAllowed, want: Confirm},
		{name: "a build behind a wrapper", command: "timeout 60 npm test", change: buildsAllowed, want: Allow},
		{name: "a build with a variable", command: "X=1 make", change: buildsAllowed, want: Confirm},
		{name: "a build that writes its output", command: "make > x", change: buildsAllowed, want: Confirm},
		{name: "a build that reads another's output", command: "ls | make -f -", change: buildsAllowed, want: Confirm},
		{name: "a build with input", command: "make -f -", input: "all: x", change: buildsAllowed, want: Confirm},
		{name: "a build by a path", command: "./make", change: buildsAllowed, want: Confirm},
		{name: "a build with words that are not known", command: "make $X", change: buildsAllowed, want: Confirm},
		{name: "a build and something else", command: "make && rm x", change: buildsAllowed, want: Confirm},
		{name: "a program that can build and does not", command: "npm publish", change: buildsAllowed, want: Ask},
		{name: "a build that is denied", command: "make", change: func(o *Options) { buildsAllowed(o); denied("make")(o) }, want: Deny},
		{name: "a build, and the tool's own confirm", command: "make", change: func(o *Options) {
			toolLevel(Confirm)(o)
			p := o.Plugins["shell"]
			p.Builds.Verdict = Allow
			o.Plugins["shell"] = p
		}, want: Confirm},
		{name: "another plugin's build", command: "make", change: func(o *Options) { o.Plugins = map[string]Plugin{"other": {Builds: Level{Verdict: Allow}}} }, want: Confirm},
		{name: "a script is not allowed by lists", command: "ls", script: true, want: Confirm},
		{name: "a script is denied by them", command: "ls; mkfs /dev/sda", script: true, want: Deny},
		{name: "an allowed command that reads input", command: "ls", input: "import evil", want: Confirm},
		{name: "a command that reads what is denied", command: "ls", input: "mkfs /dev/sda", want: Deny},
		{name: "without lists the tier decides", command: "ls", change: func(o *Options) { o.Commands = nil }, want: Confirm},
		{name: "what nobody may run", command: "rm -rf /", change: func(o *Options) { o.Commands = nil }, want: Deny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := Options{Commands: lists()}
			if tt.change != nil {
				tt.change(&opts)
			}
			rules, err := New(opts)
			if err != nil {
				t.Fatal(err)
			}
			var paths []Path
			if tt.dir != "" {
				paths = []Path{{Name: tt.dir, Absolute: tt.dir}}
			}
			commands := []Command{{Line: command.Parse(tt.command, rules.Reading([]string{"/ws"})), Script: tt.script}}
			if tt.input != "" {
				commands = append(commands, Command{Line: command.Parse(tt.input, rules.Reading([]string{"/ws"})), Script: true})
			}
			d := rules.Decide(Input{
				Plugin: "shell", Tool: "shell_exec", Tier: tool.Privileged, Folders: []string{"/ws"}, Paths: paths, Commands: commands,
			})
			if d.Verdict != tt.want {
				t.Errorf("%+v, want %v", d, tt.want)
			}
			if d.Verdict == Deny && d.Reason == "" {
				t.Error("whoever calls does not learn why it is denied")
			}
		})
	}
}

func denied(words string) func(*Options) {
	return func(o *Options) { o.Commands.Deny = []CommandRule{{Words: strings.Fields(words)}} }
}

// buildsAllowed lets commands that build run unasked.
func buildsAllowed(o *Options) {
	o.Plugins = map[string]Plugin{"shell": {Builds: Level{Verdict: Allow, Place: "config.hcl:1"}}}
}

// TestWeakestRuleIsNamed checks that a build is why a line is allowed, wherever it is in the line.
func TestWeakestRuleIsNamed(t *testing.T) {
	opts := Options{Commands: &Commands{Allow: []CommandRule{{Words: []string{"ls"}}}}}
	buildsAllowed(&opts)
	rules, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{"ls && make": "approval.builds", "make && ls": "approval.builds", "ls && ls": `commands.allow "ls"`} {
		commands := []Command{{Line: command.Parse(line, rules.Reading([]string{"/ws"}))}}
		d := rules.Decide(Input{Plugin: "shell", Tool: "shell_exec", Tier: tool.Privileged, Folders: []string{"/ws"}, Commands: commands})
		if d.Verdict != Allow || d.Rule != want {
			t.Errorf("%s: %v by %s, want it allowed by %s", line, d.Verdict, d.Rule, want)
		}
	}
}

// toolLevel sets the tool's own level.
func toolLevel(verdict Verdict) func(*Options) {
	return func(o *Options) {
		o.Plugins = map[string]Plugin{"shell": {Tools: map[string]Level{"shell_exec": {Verdict: verdict, AllowStanding: true}}}}
	}
}

// TestForbiddenPaths: patterns cover what lies below, in arguments and commands.
func TestForbiddenPaths(t *testing.T) {
	var paths Paths
	for _, pattern := range []string{"**/.ssh", "/etc/shadow", "private", "**/*.pem"} {
		parsed, err := ParsePathRule(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths.Forbidden = append(paths.Forbidden, PathRule{Pattern: parsed})
	}
	paths = Options{Paths: paths}.In("/ws", func(path string) string { return path }).Paths
	for name, want := range map[string]bool{
		"/home/a/.ssh": true, "/home/a/.ssh/id": true, "/.ssh": true, "/ws/.ssh/x/y": true, "/home/a/.sshx": false,
		"/etc/shadow": true, "/etc/shadow-": false, "/x/etc/shadow": false,
		"/ws/private": true, "/ws/private/a": true, "/ws/x/private": false, "/private": false,
		"/ws/a/b.pem": true, "/ws/a.pem/x": true, "/": false,
	} {
		if _, got := paths.forbidden(name); got != want {
			t.Errorf("%s is forbidden: %v, want %v", name, got, want)
		}
		in := Input{Folders: []string{"/ws"}, Commands: []Command{{Line: command.Parse("tool --file="+name, command.Options{})}}}
		if _, got := paths.deny(&in); got != want {
			t.Errorf("a command that names %s is denied: %v, want %v", name, got, want)
		}
	}
	for text, want := range map[string]bool{
		"cat .ssh/id": true, `echo "$(< .ssh/id)"`: true, "[[ -f .ssh/id ]]": true, "< a.pem": true, "cd /etc && cat shadow": true, "cd / ; cd etc; cat shadow": true,
		"cat shadow": false, "cd etc && cat shadow": false, "cat $(<a)": false,
	} {
		in := Input{Folders: []string{"/ws"}, Commands: []Command{{Line: command.Parse(text, command.Options{})}}}
		if _, got := paths.deny(&in); got != want {
			t.Errorf("%s is denied: %v, want %v", text, got, want)
		}
		in.Paths = []Path{{Name: "dir", Absolute: "/etc"}} // where it may run
		if _, got := paths.deny(&in); got != (want || text == "cat shadow" || text == "cd etc && cat shadow") {
			t.Errorf("%s in /etc is denied: %v", text, got)
		}
	}
	for leads, want := range map[string]bool{"/home/a/.ssh/id": true, "/ws/private": true, "/ws/x": false, "": false} {
		in := Input{Folders: []string{"/ws"}, Commands: []Command{{Line: command.Parse("cat link", command.Options{})}}, Linked: []Path{{Name: "link", Absolute: leads}}}
		if _, got := paths.deny(&in); got != want {
			t.Errorf("a command with a link to %q is denied: %v, want %v", leads, got, want)
		}
	}
	paths.WorkspaceOnly = true
	for name, want := range map[string]bool{"/ws/a": false, "/ws": false, "/wsx": true, "/": true} {
		in := Input{Folders: []string{"/ws"}, Paths: []Path{{Name: name, Absolute: name}}}
		if _, got := paths.deny(&in); got != want {
			t.Errorf("%s is out of the workspace: %v, want %v", name, got, want)
		}
	}
}

func TestDomains(t *testing.T) {
	urls := URLs{AllowDomains: []string{"example.org", "10.1.2.3"}}
	for address, denied := range map[string]bool{
		"https://example.org/x": false, "https://EXAMPLE.org.:443/": false, "http://docs.example.org": false, "http://10.1.2.3:80/": false,
		"https://example.org.evil.test/": true, "https://notexample.org/": true, "https://evil.test/?example.org": true, "https://example.org@evil.test/": true,
		"https://evil.test#@example.org": true, "example.org": true, "": true, "http://[::1]/": true, "https://evil.test\\@example.org/": true,
	} {
		if _, got := urls.deny(&Input{URLs: []string{address}}); got != denied {
			t.Errorf("%q is denied: %v, want %v", address, got, denied)
		}
	}
}

// TestCommandsOnTheHostsFiles: no readable command names the host's state or changes its other
// files, whatever the lists allow.
func TestCommandsOnTheHostsFiles(t *testing.T) {
	rules, err := New(Options{
		Hidden: []string{"/var/state"}, Protected: []string{"/ws/config.hcl", "/ws/bin", "/var/state"},
		Commands: &Commands{Allow: []CommandRule{{Words: []string{"cat"}}, {Words: []string{"ls"}}, {Words: []string{"cp", "*"}}, {Words: []string{"echo"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, denied := range map[string]bool{
		"cat config.hcl": false, "ls .": false, "ls bin": false, "cp a b": false, "cp a config.hcl2": false,
		"cat /var/state/approver.key": true, "cat ../var/state/approver.key": true, "cp /var/state/x .": true, "tool --key=/var/state/keys": true,
		"> config.hcl": true, "echo $(< /var/state/approver.key)": true, "cd bin && cp a fs": true, "cd /var && cat state/x": true, "cd sub; cp a ../config.hcl": true,
		"cp a config.hcl": true, "cp a ./bin/fs": true, "echo x > config.hcl": true, "ls | xargs cp a /ws/bin/fs": true,
	} {
		d := rules.Decide(Input{
			Tool: "shell_exec", Tier: tool.Privileged, Folders: []string{"/ws"},
			Commands: []Command{{Line: command.Parse(text, rules.Reading([]string{"/ws"}))}},
		})
		if (d.Verdict == Deny) != denied || denied && d.Rule != "the protection of the host's own files" {
			t.Errorf("%s: %+v, want a denial: %v", text, d, denied)
		}
	}
}

// TestGrantsOfCommands: which calls with commands a grant answers, and which commands it
// has to cover.
func TestGrantsOfCommands(t *testing.T) {
	standing := func(o *Options) { o.Commands.AllowStanding = true }
	rule := func(verdict Verdict, locked bool) func(*Options) {
		return func(o *Options) {
			o.Rules = []Rule{{Name: "r", Tools: []string{"shell_*"}, Verdict: verdict, Locked: locked}}
		}
	}
	for _, tt := range []struct {
		name, command string
		change        func(*Options)
		script        bool
		want          []string // nil: no grant answers it
	}{
		{name: "unlisted", command: "npm test", want: []string{"npm test"}},
		{name: "what is allowed need not be covered", command: "ls -la && npm test | sort; npm i", want: []string{"npm test", "npm i"}},
		{name: "what runs others as the shell would", command: "timeout 5 npm test", want: []string{"npm test"}},
		{name: "high risk is confirmed", command: "rm x"},
		{name: "high risk, where the admin lets grants answer", command: "rm x", change: standing, want: []string{"rm x"}},
		{name: "high risk that is only asked about", command: "rm x", change: func(o *Options) { o.Commands.Risk = map[command.Risk]Verdict{command.High: Ask} }, want: []string{"rm x"}},
		{name: "where the tool's own level lets grants answer", command: "rm x", want: []string{"rm x"}, change: func(o *Options) {
			o.Plugins = map[string]Plugin{"shell": {Tools: map[string]Level{"shell_exec": {Verdict: Confirm, AllowStanding: true}}}}
		}},
		{name: "the tool's own confirm", command: "npm test", change: func(o *Options) {
			standing(o)
			o.Plugins = map[string]Plugin{"shell": {Tools: map[string]Level{"shell_exec": {Verdict: Confirm}}}}
		}},
		{name: "a rule asks about all of it", command: "ls && npm test", change: rule(Ask, false), want: []string{"ls", "npm test"}},
		{name: "a rule asks about what is allowed", command: "ls", change: rule(Ask, false), want: []string{"ls"}},
		{name: "a locked rule", command: "npm test", change: rule(Ask, true)},
		{name: "a rule confirms", command: "npm test", change: func(o *Options) { standing(o); rule(Confirm, false)(o) }},
		{name: "a script", command: "npm test", script: true, change: standing},
		{name: "what is not clear", command: "npm $X", change: standing},
		{name: "what is not known as a whole", command: "npm test; f() { :; }", change: standing},
		{name: "a variable", command: "X=1 npm test", change: standing},
		{name: "output", command: "npm test > x", change: standing},
		{name: "input", command: "ls | npm test", change: standing},
		{name: "too many commands", command: strings.Repeat("npm test;", 33)},
		{name: "without lists, if the tool is asked about", command: "ls; npm test", want: []string{"ls", "npm test"}, change: func(o *Options) {
			o.Commands = nil
			toolLevel(Ask)(o)
		}},
		{name: "denied", command: "npm test; mkfs /dev/sda", change: func(o *Options) { o.Commands.Deny = []CommandRule{{Words: []string{"mkfs"}}} }},
		{name: "autonomous", command: "npm test", change: func(o *Options) { o.Mode = Autonomous }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := Options{Commands: &Commands{Allow: []CommandRule{{Words: []string{"ls"}}, {Words: []string{"sort"}}}}}
			if tt.change != nil {
				tt.change(&opts)
			}
			rules, err := New(opts)
			if err != nil {
				t.Fatal(err)
			}
			in := Input{
				Plugin: "shell", Tool: "shell_exec", Tier: tool.Privileged, Folders: []string{"/ws"},
				Commands: []Command{{Line: command.Parse(tt.command, rules.Reading([]string{"/ws"})), Script: tt.script}},
			}
			d := rules.Decide(in)
			var got []string
			if d.Standing {
				for _, s := range d.Unanswered {
					got = append(got, strings.Join(s.Words, " "))
				}
			}
			if d.Standing != (tt.want != nil) || !slices.Equal(got, tt.want) {
				t.Errorf("%v by %s: grants count %t, for %q; want %q", d.Verdict, d.Rule, d.Standing, got, tt.want)
			}
			in.Grants = []string{"gr_1", "gr_2"}
			with := rules.Decide(in)
			if tt.want == nil && (with.Verdict != d.Verdict || with.By == ByGrant) || tt.want != nil && (with.Verdict != Allow || with.By != ByGrant || with.Rule != "grant gr_1, gr_2") {
				t.Errorf("with grants %v by %s, without %v by %s", with.Verdict, with.Rule, d.Verdict, d.Rule)
			}
		})
	}
}
