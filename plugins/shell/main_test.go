package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/shell/internal/interpreter"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The test binary is the plugin when it is told so.
func TestMain(m *testing.M) {
	if interpreter.Entered() {
		os.Exit(interpreter.Main())
	}
	if os.Getenv("SHELL_AS_PLUGIN") != "" {
		newPlugin().Serve()
	}
	os.Exit(m.Run())
}

// shellOptions are those of a plugin without a sandbox, which tests cannot give
// it, and with the settings besides.
func shellOptions(set map[string]any) sdktest.Options {
	all := map[string]any{"unconfined": true}
	maps.Copy(all, set)
	return sdktest.Options{Settings: all, Env: []string{"SHELL_AS_PLUGIN=1", "PATH=" + os.Getenv("PATH"), "SECRET=hunter2", "LC_TIME=C", "TZ=UTC"}}
}

// startShell starts the plugin in this process, with a workspace.
func startShell(tb testing.TB, set map[string]any) (p *sdktest.Plugin, workspace string) {
	tb.Helper()
	options := shellOptions(set)
	workspace = workspaceOf(tb)
	options.Context = tool.Context{Roots: []string{workspace}, User: "ann", Session: "s1"}
	return sdktest.Start(tb, newPlugin(), options), workspace
}

// workspaceOf makes a workspace whose path has no links.
func workspaceOf(tb testing.TB) string {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

// structured is the structured result of a command.
func structured(tb testing.TB, r tool.Result) execResult {
	tb.Helper()
	var got execResult
	if err := json.Unmarshal(r.Structured, &got); err != nil {
		tb.Fatalf("structured result %s: %v (%v)", r.Structured, err, r.Error)
	}
	return got
}

func asJSON(tb testing.TB, v any) json.RawMessage {
	tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// The plugin keeps the contract, in this process and in one of its own, with
// both backends.
func TestContract(t *testing.T) {
	for _, backend := range []string{backendHost, backendSession, backendDisabled} {
		options := shellOptions(map[string]any{"backend": backend, "max_jobs": 100, "max_jobs_per_user": 100})
		if backend != backendDisabled {
			options.Calls = []sdktest.Call{
				{Tool: "shell_exec", Args: map[string]any{"command": "echo hello; echo there >&2"}},
				{Tool: "shell_exec", Args: map[string]any{"command": "while :; do echo y; sleep 0.01; done"}, Endless: true},
				{Tool: "shell_background", Args: map[string]any{"command": "echo hello"}},
				{Tool: "process_list"},
			}
		}
		t.Run(backend+" in process", func(t *testing.T) { sdktest.Run(t, newPlugin(), options) })
		t.Run(backend+" binary", func(t *testing.T) { sdktest.RunBinary(t, os.Args[0], options) })
	}
}

// Every property of every tool, and every setting, is set by some test to another
// value than its default.
func TestEveryPropertyIsTested(t *testing.T) {
	var tools []tool.Spec
	for _, backend := range []string{backendHost, backendSession} {
		p, _ := startShell(t, map[string]any{"backend": backend})
		tools = append(tools, p.Tools()...)
	}
	var calls []sdktest.Call
	for _, c := range slices.Concat(execCases(), execMistakes(), sessionCases(), jobCases(), jobMistakes("x", "y")) {
		calls = append(calls, sdktest.Call{Tool: c.tool, Args: c.args})
	}
	untested, err := sdktest.Untested(tools, calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range untested {
		t.Errorf("no test sets %s to another value than its default", path)
	}
}

// TestCasesTexts checks the texts of the table of texts that callers rely on
// which this plugin writes.
func TestCasesTexts(t *testing.T) {
	dir := os.Getenv("TOOLHOST_CASES")
	if dir == "" {
		dir = filepath.Join("testdata", "cases")
	}
	data, err := os.ReadFile(filepath.Join(dir, "texts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Prefix string
		Texts  []struct {
			When, Text string
			Code       tool.Code
		}
	}
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	p, _ := startShell(t, nil)
	long := strings.Repeat("0123456789abcdef\n", 10_000)
	rows := map[string]struct {
		args  map[string]any
		named map[string]string
	}{
		"a required argument is missing":           {map[string]any{}, map[string]string{"{name}": "command"}},
		"output longer than its budget":            {map[string]any{"command": "cat", "stdin": long}, map[string]string{"{bytes with thousands separators}": "170,000"}},
		"a command ended with a code other than 0": {map[string]any{"command": "echo kept; exit 7"}, map[string]string{"{code}": "7"}},
		"a command could not be started":           {map[string]any{"argv": []string{"no-such-program"}}, map[string]string{"{reason}": "program not found: no-such-program"}},
		"both streams have output":                 {map[string]any{"command": "echo a; echo b >&2"}, map[string]string{"{stdout}": "a\n", "{stderr}": "b\n"}},
	}
	ran := 0
	for _, row := range table.Texts {
		tt, ok := rows[row.When]
		if !ok {
			continue
		}
		ran++
		t.Run(row.When, func(t *testing.T) {
			want := row.Text
			for name, value := range tt.named {
				want = strings.ReplaceAll(want, name, value)
			}
			got := p.Call(t.Context(), "shell_exec", tt.args)
			if row.Code == "" {
				if got.Error != nil || !strings.HasSuffix(got.Text(), want) {
					t.Errorf("the text ends %q, %v, want %q", got.Text()[max(0, len(got.Text())-200):], got.Error, want)
				}
				return
			}
			if got.Error == nil || got.Error.Code != row.Code {
				t.Fatalf("shell_exec = %v, want the code %s", got.Error, row.Code)
			}
			if line, _, _ := strings.Cut(got.Error.ModelText(), "\n"); line != table.Prefix+want {
				t.Errorf("a model reads %q, want %q", line, table.Prefix+want)
			}
		})
	}
	if ran != len(rows) {
		t.Errorf("%d rows ran, want %d", ran, len(rows))
	}
	t.Logf("%d cases", ran)
	if got := p.Call(t.Context(), "shell_exec", map[string]any{"command": "kill -9 $$"}); got.Error == nil || got.Error.Message != "Exit code: -1" {
		t.Errorf("a command that was ended by a signal: %v, want Exit code: -1", got.Error)
	}
	for _, one := range []string{"echo alone", "echo alone >&2"} {
		if got := p.Call(t.Context(), "shell_exec", map[string]any{"command": one}); got.Text() != "alone\n" {
			t.Errorf("%s gives %q, want the output bare", one, got.Text())
		}
	}
}
