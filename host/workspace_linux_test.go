package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// do calls a tool and returns everything that the caller gets, and whether it is a result.
func (o owned) do(t *testing.T, tool string, arguments map[string]any) (text string, ok bool) {
	t.Helper()
	status, text, err := o.h.send("POST", "/v1/calls", o.token, asJSON(map[string]any{"tool": tool, "arguments": arguments}), "Toolhost-Session", o.session)
	outcome := outcomeOf(t, status, text, err)
	return asJSON(outcome), outcome.Error == nil
}

// TestWorkspaceOfEachUser gives each user a workspace: tools, commands, rules, approvals and
// instructions mean the caller's own, and nobody reaches another's.
func TestWorkspaceOfEachUser(t *testing.T) {
	t.Parallel()
	ada, adas := agentToken(t, "ada", "ada")
	bob, bobs := agentToken(t, "bob", "bob")
	shell := strings.Replace(fmt.Sprintf(shellUnasked, "host"), "  config {", "  isolation_scope = \"user\"\n  config {\n    apart = false", 1)
	files := "plugin \"fs\" {\n  tier = \"side_effecting\"\n  isolation_scope = \"user\"\n  approval { side_effecting = \"allow\" }\n}\n"
	paths := "policy {\n  paths {\n    forbidden = [\"./private\", \"vault\", \"DIR/link/*.txt\"]\n  }\n}\n"
	configured := writeConfig(t, listening+shell+files+paths+"auth {\n"+ada+bob+"}\nworkspace_template = \"skel\"\n")
	dir := filepath.Dir(configured)
	text, err := os.ReadFile(configured)
	if err != nil {
		t.Fatal(err)
	}
	own := strings.NewReplacer(`workspace  = "ws"`, `workspace  = "ws/${caller.user}"`, "DIR", dir).Replace(string(text))
	if err := os.WriteFile(configured, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"skel/private", "skel/docs"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"skel/private/key": "a key", "skel/docs/start": "begin here", "skel/docs/plan.txt": "a plan"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "ws/ada/docs"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	h := serve(t, configured)
	one, two := owned{h, adas, "one"}, owned{h, bobs, "two"}

	for _, user := range []struct {
		owned
		name string
	}{{one, "ada"}, {two, "bob"}} {
		if got, ok := user.do(t, "write_file", map[string]any{"path": "mine", "content": "of " + user.name}); !ok {
			t.Errorf("%s writes: %s", user.name, got)
		}
		if got := user.run(t, "shell_exec", "pwd; cat docs/start mine; echo more >> mine"); got != filepath.Join(dir, "ws", user.name)+"\nbegin hereof "+user.name {
			t.Errorf("%s's shell: %q", user.name, got)
		}
		if got, ok := user.do(t, "read_file", map[string]any{"path": "mine"}); !ok || !strings.Contains(got, "of "+user.name+"more") {
			t.Errorf("%s reads: %s", user.name, got)
		}
		for _, path := range []string{"private/key", "vault"} {
			if got, ok := user.do(t, "read_file", map[string]any{"path": path}); ok || !strings.Contains(got, "not allowed by security policy") {
				t.Errorf("%s reads a forbidden path: %s", user.name, got)
			}
		}
		if got := user.run(t, "shell_exec", "d=priv; cat ${d}ate/key"); strings.Contains(got, "a key") {
			t.Errorf("a command of %s reads a forbidden path: %s", user.name, got)
		}
		if got := user.run(t, "shell_exec", "d=do; cat ${d}cs/plan.txt"); strings.Contains(got, "a plan") != (user.name == "bob") {
			t.Errorf("what is forbidden by a link to a file of ada, for %s: %q", user.name, got)
		}
		if got := user.instructions(t); !strings.Contains(got, "the workspace "+filepath.Join(dir, "ws", user.name)+".") {
			t.Errorf("the instructions of %s: %s", user.name, got)
		}
	}
	for _, path := range []string{"../ada/mine", filepath.Join(dir, "ws/ada/mine"), filepath.Join(dir, "ws/bob/../ada/mine")} {
		if got, ok := two.do(t, "read_file", map[string]any{"path": path}); ok || strings.Contains(got, "of ada") {
			t.Errorf("bob reads %s: %s", path, got)
		}
		if got := two.run(t, "shell_exec", "cat "+path+"; ls .. "+filepath.Join(dir, "ws")+"; ln -s "+path+" link; cat link"); strings.Contains(got, "of ada") || strings.Contains(got, "ada\n") {
			t.Errorf("a command of bob reads %s: %s", path, got)
		}
		if got, ok := two.do(t, "read_file", map[string]any{"path": "link"}); ok || strings.Contains(got, "of ada") {
			t.Errorf("bob reads a link to %s: %s", path, got)
		}
	}
	a, b := ownerOfFile(t, filepath.Join(dir, "ws/ada")), ownerOfFile(t, filepath.Join(dir, "ws/bob"))
	if os.Geteuid() == 0 && (a == 0 || a == b || a != ownerOfFile(t, filepath.Join(dir, "ws/ada/mine"))) {
		t.Errorf("the workspaces belong to %d and %d", a, b)
	}

	// A workspace that is taken away comes back as new.
	if err := os.Rename(filepath.Join(dir, "ws/ada"), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // but nobody's tools run as root
		if err := os.Mkdir(filepath.Join(dir, "ws/ada"), 0o700); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the workspace of root is refused", func() bool {
			got, ok := one.do(t, "write_file", map[string]any{"path": "roots", "content": "x"})
			return !ok && strings.Contains(got, "the workspace belongs to root")
		})
		if err := os.Remove(filepath.Join(dir, "ws/ada")); err != nil { // fails if a file is in it
			t.Fatal(err)
		}
	}
	eventually(t, "a new workspace", func() bool {
		got, ok := one.do(t, "list_directory", map[string]any{"path": "."})
		return ok && strings.Contains(got, "docs") && !strings.Contains(got, "mine")
	})
}

// TestWorkspaceOfEachUserForAnOrdinaryUser runs TestWorkspaceOfEachUser with a host of an ordinary
// user.
func TestWorkspaceOfEachUserForAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // this is an ordinary user
	}
	asOrdinaryUser(t, "^TestWorkspaceOfEachUser$", "TestWorkspaceOfEachUser")
}

// instructions returns what a model is told at the beginning of a session.
func (o owned) instructions(t *testing.T) string {
	t.Helper()
	status, text, err := o.h.send("POST", "/mcp", o.token,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		"Accept", "application/json, text/event-stream")
	if err != nil || status != 200 {
		t.Fatalf("initialize = %d %s %v", status, text, err)
	}
	return text
}

func ownerOfFile(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no owner")
	}
	return stat.Uid
}
