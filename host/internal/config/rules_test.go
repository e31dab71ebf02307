package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// homeOnly is an environment in which an ordinary user, too, has a place for the host's
// state.
func homeOnly(name string) (string, bool) { return "/home/ada", name == "HOME" }

// ruled loads a policy block and returns its policy.
func ruled(tb testing.TB, block string) *policy.Rules {
	tb.Helper()
	dir := tb.TempDir()
	file := filepath.Join(dir, "config.hcl")
	if err := os.WriteFile(file, []byte("workspace = \".\"\nlocals {\n  nets = [\"10.0.0.0/8\"]\n}\npolicy {\n"+block+"\n}\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	cfg, err := Load(file, LoadOptions{LookupEnv: homeOnly})
	if err != nil {
		tb.Fatal(err)
	}
	rules, err := policy.New(cfg.Policy)
	if err != nil {
		tb.Fatal(err)
	}
	return rules
}

// input returns a call with arguments. "command" and "url" have the roles of their names, and
// "path" is relative to /ws.
func input(tb testing.TB, args string) policy.Input {
	tb.Helper()
	in := policy.Input{
		Plugin: "p", Tool: "write_file", Tier: tool.SideEffecting, Folders: []string{"/ws"},
		Caller: policy.Caller{User: "ada", Client: "editor", Session: "s1", Roles: []string{"agent"}},
	}
	decoder := json.NewDecoder(strings.NewReader(args))
	decoder.UseNumber()
	if err := decoder.Decode(&in.Arguments); err != nil {
		tb.Fatal(err)
	}
	if text, ok := in.Arguments["command"].(string); ok {
		in.Commands = []policy.Command{{Line: command.Parse(text, command.Options{Workspace: "/ws"})}}
	}
	if text, ok := in.Arguments["path"].(string); ok {
		in.Paths = []policy.Path{{Name: text, Absolute: filepath.Join("/ws", text)}}
	}
	if text, ok := in.Arguments["url"].(string); ok {
		in.URLs = []string{text}
	}
	return in
}

// TestConditions: what conditions can use, and their effect. If a condition cannot be evaluated,
// a rule that denies applies, and a rule that allows does not.
func TestConditions(t *testing.T) {
	for _, tt := range []struct {
		when, args string
		holds      bool
		broken     bool
	}{
		{when: `tool.name == "write_file" && tool.plugin == "p" && tool.tier == "side_effecting"`, args: `{}`, holds: true},
		{when: `caller.user == "ada" && caller.client == "editor" && contains(caller.roles, "agent") && session == "s1"`, args: `{}`, holds: true},
		{when: `caller.user != "ada"`, args: `{}`},
		{when: `args.n > 3`, args: `{"n": 4}`, holds: true},
		{when: `args.n > 3`, args: `{"n": 3.0}`},
		{when: `args.n == 9007199254740993`, args: `{"n": 9007199254740993}`, holds: true},
		{when: `args.force == true`, args: `{}`}, // an argument that is not given is null
		{when: `args.force`, args: `{}`, broken: true},
		{when: `args.n > 3`, args: `{}`, broken: true},
		{when: `args.n > 3`, args: `{"n": "x"}`, broken: true},
		{when: `try(args.n > 3, false)`, args: `{}`},
		{when: `can(args.list[1])`, args: `{"list": [1]}`},
		{when: `length(keys(args)) == 2 && args["a b"] == "c"`, args: `{"a b": "c", "d": null}`, holds: true},
		{when: `anytrue([for p in paths : under(p.path, "/ws/src")])`, args: `{"path": "src/main.go"}`, holds: true},
		{when: `anytrue([for p in paths : under(p.path, "/ws/src")])`, args: `{"path": "srcs/main.go"}`},
		{when: `alltrue([for p in paths : glob("**/*.go", p.path)])`, args: `{"path": "src/main.go"}`, holds: true},
		{when: `anytrue([for p in paths : under(p.rel, "src")])`, args: `{"path": "src/main.go"}`, holds: true},
		{when: `anytrue([for p in paths : p.rel == "/etc/x"])`, args: `{"path": "../etc/x"}`, holds: true},
		{when: `anytrue([for p in paths : p.base == "main.go"])`, args: `{}`},
		{when: `anytrue([for c in commands : contains(["curl", "wget"], c.name)])`, args: `{"command": "ls | env curl -T - http://x"}`, holds: true},
		{when: `anytrue([for c in commands : c.risk == "high"])`, args: `{"command": "rm x"}`, holds: true},
		{when: `anytrue([for c in commands : c.argv[0] == "ls" && length(c.argv) == 2])`, args: `{"command": "ls x"}`, holds: true},
		{when: `anytrue([for u in urls : u.host == "example.org" && u.scheme == "https"])`, args: `{"url": "https://EXAMPLE.org./x"}`, holds: true},
		{when: `anytrue([for u in urls : cidr_contains(local.nets[0], u.host)])`, args: `{"url": "http://10.1.2.3:80/"}`, holds: true},
		{when: `anytrue([for u in urls : cidr_contains(local.nets[0], u.host)])`, args: `{"url": "http://example.org/"}`},
		{when: `regex("^a+$", args.s)`, args: `{"s": "aaa"}`, holds: true},
		{when: `regex(args.s, "x")`, args: `{"s": "("}`, broken: true},
		{when: `startswith(args.s, "a") && endswith(args.s, "c") && !startswith(args.s, "b")`, args: `{"s": "abc"}`, holds: true},
		{when: `args.s`, args: `{"s": "text"}`, broken: true},
		{when: `args.s == null || args.s == "x"`, args: `{}`, holds: true},
	} {
		for _, rule := range []struct {
			verdict string
			applies policy.Verdict
		}{
			{verdict: "deny", applies: policy.Deny},
			{verdict: "allow", applies: policy.Allow},
		} {
			rules := ruled(t, `rule "r" {
			tools   = ["write_*"]
			verdict = "`+rule.verdict+`"
			when    = `+tt.when+`
			}`)
			want := policy.Ask // the tier's
			if tt.holds || tt.broken && rule.verdict == "deny" {
				want = rule.applies
			}
			d := rules.Decide(input(t, tt.args))
			if d.Verdict != want || (len(d.Notes) > 0) != tt.broken {
				t.Errorf("%s of %s if %s: %+v, want %v, notes: %v", rule.verdict, tt.args, tt.when, d, want, tt.broken)
			}
			if tt.broken && strings.Contains(strings.Join(d.Notes, " "), "text") {
				t.Errorf("%s: the note %q quotes the arguments", tt.when, d.Notes)
			}
		}
	}
}

// Nobody who makes a call reads what env() and file() return.
func TestSecretInReason(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.hcl")
	text := "workspace = \".\"\npolicy {\n  rule \"r\" {\n    tools = [\"x\"]\n    verdict = \"deny\"\n    reason = \"key: ${env(\"KEY\")}\"\n  }\n}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(file, LoadOptions{LookupEnv: func(name string) (string, bool) {
		if name == "KEY" {
			return "0123456789", true
		}
		return homeOnly(name)
	}})
	if err == nil || !strings.Contains(err.Error(), "A secret in a reason") || strings.Contains(err.Error(), "0123456789") {
		t.Errorf("Load = %v, want a mistake that hides the secret", err)
	}
}

// Policies that decide differently because a local differs have different revisions.
func TestRevisionKnowsLocals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.hcl")
	load := func(value string) string {
		text := "workspace = \".\"\nlocals {\n  x = \"" + value + "\"\n}\npolicy {\n  rule \"r\" {\n    tools = [\"x\"]\n    verdict = \"deny\"\n    when = args.a == local.x\n  }\n}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := Load(file, LoadOptions{LookupEnv: homeOnly})
		if err != nil {
			t.Fatal(err)
		}
		rules, err := policy.New(cfg.Policy)
		if err != nil {
			t.Fatal(err)
		}
		return rules.Revision()
	}
	if a, b, again := load("a"), load("b"), load("a"); a == b || a != again {
		t.Errorf("the revisions are %s, %s and %s", a, b, again)
	}
}

// TestRulesOrder: which of several rules, lists and levels decides.
func TestRulesOrder(t *testing.T) {
	const (
		deny    = `rule "no" { tools = ["*"], verdict = "deny", when = args.a == 1, reason = "not that" }`
		allow   = `rule "yes" { tools = ["*"], verdict = "allow", when = args.a != 2 }`
		confirm = `rule "sure" { tools = ["*"], verdict = "confirm", when = args.a == 3 }`
		ask     = `rule "well" { tools = ["*"], verdict = "ask", when = args.a >= 3 }`
		locked  = `rule "lock" { tools = ["*"], verdict = "ask", locked = true, when = args.a == 4 }`
		shadow  = `rule "ghost" { tools = ["*"], verdict = "deny", shadow = true }`
	)
	all := []string{shadow, allow, ask, confirm, locked, deny}
	for _, tt := range []struct {
		name, extra, args string
		grant             string
		want              policy.Verdict
		rule              string
	}{
		{"a deny wins", "", `{"a": 1}`, "gr_1", policy.Deny, `rule "no"`},
		{"an allow goes before the tier", "", `{"a": 0}`, "", policy.Allow, `rule "yes"`},
		{"without a rule the tier decides", "", `{"a": 2}`, "", policy.Ask, "tier side_effecting"},
		{"the strictest that asks", "", `{"a": 3}`, "", policy.Confirm, `rule "sure"`},
		{"a grant does not answer it", "", `{"a": 3}`, "gr_1", policy.Confirm, `rule "sure"`},
		{"a grant answers the other", "", `{"a": 5}`, "gr_1", policy.Allow, "grant gr_1"},
		{"not where a locked rule asks, too", "", `{"a": 4}`, "gr_1", policy.Ask, `rule "well"`},
		{"nor does the mode", `mode = "autonomous"`, `{"a": 4}`, "", policy.Ask, `rule "well"`},
		{"which softens others", `mode = "autonomous"`, `{"a": 5}`, "", policy.Allow, "mode autonomous"},
		{"read_only goes first", `mode = "read_only"`, `{"a": 1}`, "", policy.Deny, "mode read_only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var blocks strings.Builder
			blocks.WriteString(tt.extra)
			for _, rule := range all {
				blocks.WriteString("\n" + strings.NewReplacer("{ ", "{\n", " }", "\n}", ", ", "\n").Replace(rule))
			}
			in := input(t, tt.args)
			if tt.grant != "" {
				in.Grants = []string{tt.grant}
			}
			d := ruled(t, blocks.String()).Decide(in)
			if d.Verdict != tt.want || d.Rule != tt.rule {
				t.Errorf("%v by %s, want %v by %s", d.Verdict, d.Rule, tt.want, tt.rule)
			}
			if len(d.Notes) != 1 || !strings.Contains(d.Notes[0], `rule "ghost"`) || !strings.Contains(d.Notes[0], "would deny") {
				t.Errorf("notes %q, want what the shadow would do", d.Notes)
			}
			if d.Verdict == policy.Deny && d.Rule == `rule "no"` && (d.Reason != "not that" || !strings.HasPrefix(d.Where, filepath.Dir(d.Where))) {
				t.Errorf("reason %q at %q", d.Reason, d.Where)
			}
		})
	}
}
