package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// What the host decides by: tiers, roles of arguments, and the other names that
// callers know.
func TestDeclarations(t *testing.T) {
	const names = "cmd,script,shell_command,bash,sh"
	type property struct {
		role, aliases string // names stand for a text in the place of all arguments, too
	}
	shared := map[string]property{"command": {"command", names}, "argv": {"argv", ""}, "cwd": {"path", "workdir"}, "env": {"command", ""}, "stdin": {"script", ""}}
	session := map[string]property{"command": {"script", names}, "cwd": {"path", "workdir"}, "stdin": {"script", ""}}
	for backend, exec := range map[string]map[string]property{backendHost: shared, backendSession: session} {
		p, _ := startShell(t, map[string]any{"backend": backend})
		want := map[string]struct {
			tier        tool.Tier
			destructive bool
			properties  map[string]property
		}{
			"shell_exec":       {tool.Privileged, true, exec},
			"shell_background": {tool.Privileged, true, shared},
			"process_output":   {tool.ReadOnly, false, nil},
			"process_list":     {tool.ReadOnly, false, nil},
			"process_input":    {tool.SideEffecting, false, map[string]property{"data": {"script", ""}}},
			"process_kill":     {tool.SideEffecting, true, nil},
		}
		for _, spec := range p.Tools() {
			w, ok := want[spec.Name]
			delete(want, spec.Name)
			if !ok || spec.Tier != w.tier || spec.Destructive != w.destructive {
				t.Errorf("%s: %s is %v, destructive: %t", backend, spec.Name, spec.Tier, spec.Destructive)
			}
			var schema struct {
				Properties map[string]struct {
					Role    string   `json:"x-role"`
					Aliases []string `json:"x-aliases"`
					Raw     bool     `json:"x-raw"`
				}
			}
			if err := json.Unmarshal(spec.InputSchema, &schema); err != nil {
				t.Fatal(err)
			}
			for name, got := range schema.Properties {
				p := property{got.Role, strings.Join(got.Aliases, ",")}
				if p != w.properties[name] || got.Raw != (p.aliases == names) {
					t.Errorf("%s: %s of %s has %q, raw: %t, want %q", backend, name, spec.Name, p, got.Raw, w.properties[name])
				}
			}
			if spec.Name == "shell_exec" && !slices.Equal(spec.Aliases, []string{"Bash", "shell", "bash"}) {
				t.Errorf("%s: shell_exec is also %q", backend, spec.Aliases)
			}
		}
		if len(want) > 0 {
			t.Errorf("%s: tools are missing: %v", backend, want)
		}
	}
}

// TestSizeOfList bounds what names, descriptions and schemas of the tools cost a model: 250
// tokens each and 155 on average, at four bytes a token.
func TestSizeOfList(t *testing.T) {
	hints := regexp.MustCompile(`,"x-[a-z]+":("[^"]*"|true|\[[^]]*\])`) // for the host, which models do not get
	for _, backend := range []string{backendHost, backendSession} {
		p, _ := startShell(t, map[string]any{"backend": backend})
		sum := 0
		for _, spec := range p.Tools() {
			size := len(spec.Name) + len(spec.Description) + len(hints.ReplaceAll(spec.InputSchema, nil))
			sum += size
			if size > 4*250 {
				t.Errorf("%s: %s takes %d bytes, more than 1,000", backend, spec.Name, size)
			}
		}
		if most := 4 * 155; sum > most*len(p.Tools()) {
			t.Errorf("%s: the tools take %d bytes on average, more than %d", backend, sum/len(p.Tools()), most)
		}
	}
}
