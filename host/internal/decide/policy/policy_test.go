package policy_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

// levels are the configuration of most tests.
func levels(mode policy.Mode) policy.Options {
	return policy.Options{
		Mode: mode, ModePlace: "config.hcl:1", Protected: []string{"/etc/toolhost", "/project/config.hcl"},
		Hidden: []string{"/state"},
		Plugins: map[string]policy.Plugin{"p": {
			Tiers: map[tool.Tier]policy.Level{tool.SideEffecting: {Verdict: policy.Confirm, Place: "config.hcl:2"}},
			Tools: map[string]policy.Level{
				"free":    {Verdict: policy.Allow, Place: "config.hcl:3"},
				"asked":   {Verdict: policy.Ask, Place: "config.hcl:4"},
				"sure":    {Verdict: policy.Confirm, Place: "config.hcl:5"},
				"relaxed": {Verdict: policy.Confirm, AllowStanding: true, Place: "config.hcl:6"},
				"never":   {Verdict: policy.Deny, Place: "config.hcl:7"},
			},
		}},
	}
}

func in(plugin, name string, tier tool.Tier) policy.Input {
	return policy.Input{Plugin: plugin, Tool: name, Tier: tier}
}

func asks(i policy.Input) policy.Input    { i.Asks = true; return i }
func granted(i policy.Input) policy.Input { i.Grants = []string{"gr_1"}; return i }
func at(i policy.Input, path string) policy.Input {
	i.Paths = []policy.Path{{Name: "name", Absolute: path}}
	return i
}

func TestDecide(t *testing.T) {
	const (
		ro, se, priv = tool.ReadOnly, tool.SideEffecting, tool.Privileged
		auto, config = policy.ByAuto, policy.ByConfig
	)
	for _, tt := range []struct {
		name  string
		mode  policy.Mode
		in    policy.Input
		want  policy.Verdict
		where string
		by    policy.By
	}{
		{"read_only runs unasked", 0, in("q", "x", ro), policy.Allow, "", auto},
		{"side_effecting is asked", 0, in("q", "x", se), policy.Ask, "", ""},
		{"privileged is confirmed", 0, in("q", "x", priv), policy.Confirm, "", ""},
		{"a tier that is none is confirmed", 0, in("q", "x", 0), policy.Confirm, "", ""},
		{"the author asks", 0, asks(in("q", "x", ro)), policy.Ask, "", ""},
		{"the author asks, the admin allows", 0, asks(in("p", "free", se)), policy.Allow, "config.hcl:3", config},
		{"a level of the plugin's tier", 0, in("p", "x", se), policy.Confirm, "config.hcl:2", ""},
		{"a level of another tier does not count", 0, in("p", "x", priv), policy.Confirm, "", ""},
		{"a level of another plugin does not count", 0, in("q", "free", priv), policy.Confirm, "", ""},
		{"the tool's level goes before the tier's", 0, in("p", "asked", se), policy.Ask, "config.hcl:4", ""},
		{"a denied tool", 0, in("p", "never", ro), policy.Deny, "config.hcl:7", ""},

		{"a grant answers ask", 0, granted(in("q", "x", se)), policy.Allow, "", policy.ByGrant},
		{"a grant does not answer confirm", 0, granted(in("p", "sure", se)), policy.Confirm, "config.hcl:5", ""},
		{"a grant answers confirm where the admin lets it", 0, granted(in("p", "relaxed", se)), policy.Allow, "", policy.ByGrant},
		{"a grant never answers deny", 0, granted(in("p", "never", se)), policy.Deny, "config.hcl:7", ""},

		{"read_only mode denies", policy.ReadOnly, granted(in("p", "free", se)), policy.Deny, "config.hcl:1", ""},
		{"read_only mode reads", policy.ReadOnly, in("q", "x", ro), policy.Allow, "", auto},
		{"autonomous does not ask", policy.Autonomous, in("q", "x", se), policy.Allow, "config.hcl:1", config},
		{"autonomous confirms", policy.Autonomous, in("q", "x", priv), policy.Confirm, "", ""},
		{"autonomous confirms a tool", policy.Autonomous, in("p", "sure", se), policy.Confirm, "config.hcl:5", ""},
		{"autonomous denies", policy.Autonomous, in("p", "never", se), policy.Deny, "config.hcl:7", ""},

		{"a protected file", policy.Autonomous, at(granted(in("p", "free", se)), "/project/config.hcl"), policy.Deny, "", ""},
		{"below a protected folder", 0, at(in("p", "free", se), "/etc/toolhost/a/b"), policy.Deny, "", ""},
		{"beside a protected folder", 0, at(in("p", "free", se), "/etc/toolhostess"), policy.Allow, "config.hcl:3", config},
		{"around a protected file", 0, at(in("p", "free", se), "/project"), policy.Deny, "", ""},
		{"around everything", 0, at(in("p", "free", se), "/"), policy.Deny, "", ""},
		{"beside, with the same beginning", 0, at(in("p", "free", se), "/wor"), policy.Allow, "config.hcl:3", config},
		{"reading a hidden file", policy.Autonomous, at(granted(in("p", "free", ro)), "/state/approver.key"), policy.Deny, "", ""},
		{"changing a hidden file", 0, at(in("p", "free", se), "/state"), policy.Deny, "", ""},
		{"reading around a hidden folder", 0, at(in("q", "x", ro), "/"), policy.Allow, "", auto},
		{"reading is not changing", 0, at(in("q", "x", ro), "/project/config.hcl"), policy.Allow, "", auto},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules, err := policy.New(levels(tt.mode))
			if err != nil {
				t.Fatal(err)
			}
			got := rules.Decide(tt.in)
			if got.Verdict != tt.want || got.Where != tt.where || got.By != tt.by {
				t.Errorf("Decide(%+v) = %+v, want %v by %q at %q", tt.in, got, tt.want, tt.by, tt.where)
			}
			if (got.Verdict == policy.Deny) != (got.Reason != "") {
				t.Errorf("Decide(%+v) = %+v, want a reason exactly if it is denied", tt.in, got)
			}
			protected := got.Verdict == policy.Deny && len(tt.in.Paths) > 0
			if got.Rule == "" || (got.Change == "") != (protected || got.Rule == "mode autonomous") {
				t.Errorf("Decide(%+v) = %+v, want the rule, and what would change it if anything does", tt.in, got)
			}
			if protected && got.Reason != "Path not allowed by security policy: name" {
				t.Errorf("Decide(%+v) = %+v, want the path as the call named it", tt.in, got)
			}
			if diff := cmp.Diff(got, rules.Decide(tt.in)); diff != "" {
				t.Errorf("the same input decides otherwise the second time:\n%s", diff)
			}
		})
	}
}

// TestStanding checks where a standing answer may be offered: exactly where it would apply.
// TestUsual checks what is said of a tool without a call: its level and the mode, and the rules
// about it, which decide nothing here.
func TestUsual(t *testing.T) {
	opts := levels(policy.Autonomous)
	opts.Rules = []policy.Rule{
		{Name: "one", Tools: []string{"as*"}, Verdict: policy.Deny, Place: "config.hcl:8"},
		{Name: "other", Tools: []string{"x"}, Verdict: policy.Deny},
		{Name: "ghost", Tools: []string{"asked"}, Verdict: policy.Deny, Shadow: true},
		{Name: "two", Tools: []string{"asked"}, Verdict: policy.Allow},
	}
	for _, tt := range []struct {
		mode  policy.Mode
		in    policy.Input
		want  policy.Verdict
		by    string
		rules []string
	}{
		{0, in("p", "asked", tool.ReadOnly), policy.Ask, `tool "asked"`, []string{`rule "one" at config.hcl:8`, `rule "two"`}},
		{policy.Autonomous, in("p", "asked", tool.ReadOnly), policy.Allow, "mode autonomous", []string{`rule "one" at config.hcl:8`, `rule "two"`}},
		{policy.ReadOnly, in("p", "free", tool.SideEffecting), policy.Deny, "mode read_only", nil},
		{0, in("p", "never", tool.ReadOnly), policy.Deny, `tool "never"`, nil},
		{0, in("q", "y", tool.Privileged), policy.Confirm, "tier privileged", nil},
		{0, asks(in("q", "y", tool.ReadOnly)), policy.Ask, "the tool's author", nil},
	} {
		opts.Mode = tt.mode
		rules, err := policy.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		d, about := rules.Usual(tt.in)
		if d.Verdict != tt.want || d.Rule != tt.by || !slices.Equal(about, tt.rules) {
			t.Errorf("Usual(%s, mode %v) = %v by %s, rules %q; want %v by %s, rules %q", tt.in.Tool, tt.mode, d.Verdict, d.Rule, about, tt.want, tt.by, tt.rules)
		}
	}
}

func TestStanding(t *testing.T) {
	rules, err := policy.New(levels(policy.Supervised))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "free", "asked", "sure", "relaxed", "never"} {
		for _, tier := range []tool.Tier{tool.ReadOnly, tool.SideEffecting, tool.Privileged} {
			plain, answered := rules.Decide(in("p", name, tier)), rules.Decide(granted(in("p", name, tier)))
			counts := plain.Verdict != policy.Allow && answered.Verdict == policy.Allow
			if plain.Standing != counts {
				t.Errorf("%s, %s: Standing = %v, and a grant turns %v into %v", name, tier, plain.Standing, plain.Verdict, answered.Verdict)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, path := range []string{"", "relative", "/a/../b", "/a/"} {
		if _, err := policy.New(policy.Options{Protected: []string{path}}); err == nil || !strings.Contains(err.Error(), "protected path") {
			t.Errorf("New with protected path %q: %v, want an error that names it", path, err)
		}
	}
}

func TestRevision(t *testing.T) {
	revision := func(opts policy.Options) string {
		t.Helper()
		rules, err := policy.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		return rules.Revision()
	}
	first := revision(levels(0))
	if again := revision(levels(0)); again != first {
		t.Error("equal policies have different revisions")
	}
	if revision(levels(policy.Autonomous)) == first {
		t.Error("different policies have one revision")
	}
}

func TestNames(t *testing.T) {
	for _, v := range []policy.Verdict{policy.Allow, policy.Ask, policy.Confirm, policy.Deny} {
		if got, err := policy.ParseVerdict(v.String()); err != nil || got != v {
			t.Errorf("ParseVerdict(%q) = %v, %v", v, got, err)
		}
	}
	for _, m := range []policy.Mode{policy.Supervised, policy.ReadOnly, policy.Autonomous} {
		if got, err := policy.ParseMode(m.String()); err != nil || got != m {
			t.Errorf("ParseMode(%q) = %v, %v", m, got, err)
		}
	}
	if _, err := policy.ParseVerdict("alow"); err == nil || !strings.Contains(err.Error(), "allow, ask, confirm, deny") {
		t.Errorf("ParseVerdict(alow): %v, want an error that lists the verdicts", err)
	}
	if _, err := policy.Verdict(0).MarshalText(); err == nil {
		t.Error("the zero Verdict has a text")
	}
}

func BenchmarkDecide(b *testing.B) {
	rules, err := policy.New(levels(policy.Supervised))
	if err != nil {
		b.Fatal(err)
	}
	input := at(in("p", "asked", tool.SideEffecting), "/project/a.txt")
	for b.Loop() {
		rules.Decide(input)
	}
}

// A file that is protected by name is not changed, in any spelling and at any depth below the
// callers' folders; the folders themselves may have such names.
func TestProtectedNames(t *testing.T) {
	rules, err := policy.New(policy.Options{Protect: map[string][]string{"git": {protect.Hooks, protect.Editor, protect.Agents}, "free": {}}})
	if err != nil {
		t.Fatal(err)
	}
	const ws = "/home/u/.claude/worktrees/w"
	deep := strings.Repeat("cd a && ", 40) // more directories than are followed
	for _, tt := range []struct {
		plugin, path string
		tier         tool.Tier
		denied       bool
	}{
		{"fs", ".git/config", tool.SideEffecting, true},
		{"fs", "sub/.git/config", tool.SideEffecting, true},
		{"fs", ".git/modules/m/hooks/x", tool.Privileged, true},
		{"fs", ".git/info/attributes", tool.SideEffecting, true},
		{"fs", ".GIT/Config", tool.SideEffecting, true},
		{"fs", ".git./config", tool.SideEffecting, true},
		{"fs", ".vscode/tasks.json", tool.SideEffecting, true},
		{"fs", ".claude/settings.json", tool.SideEffecting, true},
		{"fs", "a/.mcp.json", tool.SideEffecting, true},
		{"fs", ".envrc", tool.SideEffecting, true},
		{"fs", ".git", tool.SideEffecting, true},
		{"fs", ".git/config", tool.ReadOnly, false},
		{"fs", "src/config", tool.SideEffecting, false},
		{"fs", "", tool.SideEffecting, false},
		{"git", ".git/config", tool.SideEffecting, false},
		{"git", ".git/hooks/x", tool.SideEffecting, true},
		{"git", ".husky/x", tool.SideEffecting, true},
		{"free", ".git/hooks/x", tool.SideEffecting, false},
	} {
		input := at(in(tt.plugin, "x", tt.tier), filepath.Join(ws, tt.path))
		input.Folders = []string{ws}
		if got := rules.Decide(input); (got.Verdict == policy.Deny) != tt.denied {
			t.Errorf("%s changes %q: %v (%s), want denied: %t", tt.plugin, tt.path, got.Verdict, got.Rule, tt.denied)
		}
	}
	for path, words := range map[string]string{".git/config": `"git"`, ".git/hooks/x": `"git" and "hooks"`, ".vscode/x": `"editor"`, "a/.mcp.json": `"agents"`} {
		input := at(in("fs", "x", tool.SideEffecting), filepath.Join(ws, path))
		input.Folders = []string{ws}
		d := rules.Decide(input)
		if want := "leaving " + words + ` out of protect in the sandbox of plugin "fs"`; !strings.Contains(d.Rule, "protect "+words) || !strings.Contains(d.Change, want) {
			t.Errorf("%s: the rule is %q, and what changes it %q, want the words %s", path, d.Rule, d.Change, words)
		}
	}
	for _, tt := range []struct {
		line   string
		denied bool
		words  []string // that a person has to see
	}{
		{"echo x > .envrc", true, nil},
		{"echo x >> sub/.git/config", true, nil},
		{"> .vscode/tasks.json", true, nil},
		{"cd .git && echo x > config", true, nil},
		{"sort -o .envrc x", false, []string{".envrc"}},
		{"sed -i s/a/b/ .git/config", false, []string{".git/config"}},
		{"cat .git/config", false, nil},
		{"cp a .GIT/hooks/pre-commit", false, []string{".GIT/hooks/pre-commit"}},
		{"touch " + ws + "/.mcp.json", false, []string{ws + "/.mcp.json"}},
		{"cd .git && tee config", false, []string{"config"}},
		{"cat .envrc", false, nil},
		{"cat < .envrc", false, nil},
		{"echo x > out.txt", false, nil},
		{"make config", false, nil},
		{deep + "cd .git && echo x > config", true, nil},
		{deep + "echo x > .envrc", true, nil},
		{deep + "echo x > sub/.git/config", true, nil},
		{deep + "cd .git && tee config", false, []string{"config"}},
		{deep + "echo x > out.txt", false, nil},
	} {
		input := in("shell", "x", tool.Privileged)
		input.Folders = []string{ws}
		read := policy.Command{Line: command.Parse(tt.line, rules.Reading(input.Folders))}
		input.Commands = []policy.Command{read}
		if got := rules.Decide(input); (got.Verdict == policy.Deny) != tt.denied {
			t.Errorf("%s: %v (%s), want denied: %t", tt.line, got.Verdict, got.Rule, tt.denied)
		}
		if diff := cmp.Diff(tt.words, rules.Touched(&input, read)); diff != "" {
			t.Errorf("%s touches (-want +got):\n%s", tt.line, diff)
		}
	}
}
