package policy

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestPatternsOfWorkspaces: relative patterns cover paths in the workspace of the caller only.
func TestPatternsOfWorkspaces(t *testing.T) {
	t.Parallel()
	all, err := New(Options{Paths: Paths{
		Forbidden: []PathRule{{Pattern: "private"}, {Pattern: "**/.ssh"}, {Pattern: "/etc/x"}},
		Sensitive: Sensitive{Patterns: []string{"*.pem", InWorkspace + "keys", "!" + InWorkspace + "keys/public"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(path string) string {
		if len(path) >= 7 && path[:7] == "/ws/ada" {
			return "/data" + path[3:] // a link
		}
		return path
	}
	for name, want := range map[string]Verdict{
		"/ws/ada/private/a": Deny, "/data/ada/private": Deny, "/ws/bob/private": Allow, "/ws/bob/.ssh/id": Deny, "/etc/x": Deny,
		"/ws/ada/keys/a": Confirm, "/data/ada/keys/a": Confirm, "/ws/ada/keys/public": Allow, "/ws/bob/keys/a": Allow,
		"/ws/ada/a.pem": Confirm, "/ws/ada/a": Allow,
	} {
		d := all.In("/ws/ada", resolve).Decide(Input{
			Plugin: "fs", Tool: "read_file", Tier: tool.ReadOnly, Folders: []string{"/ws/ada", "/data/ada"},
			Paths: []Path{{Name: name, Absolute: name}},
		})
		if d.Rule == "the bounds of the workspace" { // what no pattern covers
			d.Verdict = Allow
		}
		if d.Verdict != want {
			t.Errorf("%s: %v by %s, want %v", name, d.Verdict, d.Rule, want)
		}
	}
	if ada, bob := all.In("/ws/ada", resolve), all.In("/ws/bob", resolve); ada.Revision() == bob.Revision() {
		t.Error("the policies of two workspaces have one revision")
	}
}

// TestPatternsThatDoNotFit: a policy that cannot be made for a workspace denies everything.
func TestPatternsThatDoNotFit(t *testing.T) {
	t.Parallel()
	all, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	all.opts.Paths.Sensitive.Patterns = []string{"["} // New refuses it
	if d := all.In("/ws/ada", func(path string) string { return path }).Decide(Input{Tool: "x", Tier: tool.ReadOnly}); d.Verdict != Deny {
		t.Errorf("%+v, want a denial", d)
	}
}
