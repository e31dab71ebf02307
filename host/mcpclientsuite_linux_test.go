package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Variables that the conformance suite sets for the client under test.
const (
	suiteScenario = "MCP_CONFORMANCE_SCENARIO"
	suiteContext  = "MCP_CONFORMANCE_CONTEXT"
)

// clientFailures are the checks that fail, in both revisions, and why.
var clientFailures = map[string]string{
	"json-schema-2020-12-preservation:json-schema-2020-12-client-additionalProperties-preserved": "the host's list for models leaves it out; the host checks arguments with the whole schema",
}

// TestClientConformance runs the official conformance suite with the plugin mcp as its client, in the
// sandbox and through the host's proxy. The scenarios of OAuth, which the suite runs as well, do not
// apply: the plugin sends the credentials that it is configured with, and does not log in. No scenario
// asks for sampling or roots, which the plugin refuses, or for tasks; those for skills need an extension.
func TestClientConformance(t *testing.T) {
	t.Parallel()
	node, program := peerProgram(t, "conformance")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		revision  string
		scenarios int // that apply
	}{
		{"2026-07-28", 8},
		{"2025-11-25", 5},
	} {
		t.Run(tt.revision, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), node, program, "client", "--command", self, "--requirements", tt.revision, "--output-dir", dir, "--timeout", "60000")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), binVariable+"="+bin)
			// The suite exits with status 1 if anything fails; its reports say more.
			out, err := cmd.CombinedOutput()
			if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
				t.Fatal(err)
			}
			ran := clientReports(t, dir)
			if len(ran) != tt.scenarios {
				t.Errorf("the suite ran %d scenarios, want %d: %q\n%s", len(ran), tt.scenarios, slices.Sorted(maps.Keys(ran)), out)
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(clientFailures)), failures(t, ran, clientFailures)); diff != "" {
				t.Errorf("what fails (-expected +now):\n%s", diff)
			}
		})
	}
}

// stamped is the name of a report's directory: a scenario and a time.
var stamped = regexp.MustCompile(`^(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// clientReports reads the checks of the scenarios that apply.
func clientReports(t *testing.T, dir string) map[string][]check {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string][]check{}
	for _, e := range entries {
		name := stamped.FindStringSubmatch(e.Name())
		if name == nil {
			continue // auth, a directory of its own
		}
		for _, file := range []string{"stdout.txt", "stderr.txt"} {
			if text, err := os.ReadFile(filepath.Join(dir, e.Name(), file)); err == nil && len(text) > 0 {
				t.Logf("%s of %s: %s", file, name[1], text)
			}
		}
		var checks []check
		text, err := os.ReadFile(filepath.Join(dir, e.Name(), "checks.json"))
		if err == nil {
			err = json.Unmarshal(text, &checks)
		}
		if err != nil {
			t.Fatalf("the report of %s: %v", name[1], err)
		}
		ran[name[1]] = checks
	}
	return ran
}

// runScenario is the client under test: a host with the suite's server as a plugin, whose tools it calls.
func runScenario(ctx context.Context, scenario, address string) error {
	if strings.HasPrefix(scenario, "auth/") {
		return nil
	}
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	at, err := url.Parse(strings.Replace(address, "localhost", "127.0.0.1", 1)) // the suite listens on both
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "config.hcl")
	blocks := fmt.Sprintf(`
server { listen = "" }
policy { mode = "autonomous" }
plugin "suite" {
  path   = "mcp"
  tier   = "side_effecting"
  config { url = %q }
  sandbox {
    filesystem { workspace = "none" }
    network {
      mode  = "proxy"
      allow = ["127.0.0.1/32:%s"]
    }
  }
}
`, at, at.Port())
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "ws"), 0o755), os.WriteFile(config, []byte(settingsFor(blocks)), 0o600)); err != nil {
		return err
	}
	var pending struct{ Digest string }
	out, err := toolhost(ctx, config, "plugins", "diff", "suite", "--json").Output()
	if err == nil {
		err = json.Unmarshal(out, &pending)
	}
	if err == nil && pending.Digest != "" {
		err = toolhost(ctx, config, "plugins", "accept", "suite", "--digest", pending.Digest).Run()
	}
	if err != nil {
		return err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "suite", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
	})
	s, err := client.Connect(ctx, &mcp.CommandTransport{Command: toolhost(ctx, config, "mcp")}, nil)
	if err != nil {
		return err
	}
	return errors.Join(callAll(ctx, s), s.Close())
}

// callAll calls the server's tools: as the suite says, or each of them with what its schema requires.
func callAll(ctx context.Context, s *mcp.ClientSession) error {
	var told struct {
		ToolCalls []struct {
			Name      string
			Arguments map[string]any
		}
	}
	if text := os.Getenv(suiteContext); text != "" {
		if err := json.Unmarshal([]byte(text), &told); err != nil {
			return err
		}
	}
	schemas := map[string]any{}
	for t, err := range s.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(t.Name, "suite_") {
			schemas[t.Name] = t.InputSchema
		}
	}
	if len(told.ToolCalls) > 0 {
		for _, call := range told.ToolCalls {
			if err := callOne(ctx, s, "suite_"+call.Name, call.Arguments); err != nil {
				return err
			}
		}
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		args := required(schemas[name])
		if name == "suite_json_schema_echo" {
			args = map[string]any{"schema": schemas["suite_json_schema_2020_12_tool"]}
		}
		if err := callOne(ctx, s, name, args); err != nil {
			return err
		}
	}
	return nil
}

func callOne(ctx context.Context, s *mcp.ClientSession, name string, args map[string]any) error {
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return fmt.Errorf("call %s: %w", name, err)
	}
	var text bytes.Buffer
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	_, err = fmt.Fprintf(os.Stdout, "%s(%v): %t %s\n", name, args, r.IsError, &text)
	return err
}

// required returns arguments with the properties that a schema requires.
func required(schema any) map[string]any {
	args := map[string]any{}
	s, _ := schema.(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	names, _ := s["required"].([]any)
	for _, name := range names {
		property, _ := properties[fmt.Sprint(name)].(map[string]any)
		args[fmt.Sprint(name)] = map[string]any{"number": 1.5, "integer": 1, "boolean": true, "array": []any{}, "object": map[string]any{}, "null": nil}[fmt.Sprint(property["type"])]
		if property["type"] == "string" {
			args[fmt.Sprint(name)] = "text"
		}
	}
	return args
}
