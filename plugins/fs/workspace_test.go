package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// workspaceOf opens dir as a call would, with room for budget bytes.
func workspaceOf(tb testing.TB, dir string, budget tool.ByteSize) *workspace {
	tb.Helper()
	w, err := openWorkspace([]string{dir}, roots.Options{}, budget, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { w.Close() })
	return w
}

// toolCase is a call of a tool, with its expected result.
type toolCase struct {
	name string
	tool string
	// in is the arguments: the tool's own struct, or a map.
	in   any
	want string // the text parts, joined by newlines
	// facts are some of the metadata; nil means that a fact is missing.
	facts map[string]any
	err   string // code and message
}

// runCases makes the calls as the host would.
func runCases(t *testing.T, dir string, budget tool.ByteSize, cases []toolCase) {
	t.Helper()
	p := start(t, dir, budget)
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			got := p.Call(t.Context(), tt.tool, tt.in)
			if diff := cmp.Diff(tt.err, message(got)); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, got.Text()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			for fact, want := range tt.facts {
				if diff := cmp.Diff(asJSON(t, want), asJSON(t, got.Metadata[fact])); diff != "" {
					t.Errorf("metadata %q (-want +got):\n%s", fact, diff)
				}
			}
		})
	}
}

// start serves the plugin; its workspace is dir.
func start(tb testing.TB, dir string, budget tool.ByteSize) *sdktest.Plugin {
	tb.Helper()
	return sdktest.Start(tb, newPlugin(), sdktest.Options{Context: tool.Context{Roots: []string{dir}, MaxOutput: budget}})
}

// message is the code and message of a failure, or "".
func message(r tool.Result) string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Error()
}

func asJSON(tb testing.TB, value any) string {
	tb.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// openWorkspace opens a workspace outside of a call.
func openWorkspace(dirs []string, options roots.Options, budget tool.ByteSize, s *settings) (*workspace, error) {
	r, err := roots.Open(dirs, options)
	if err != nil {
		return nil, err
	}
	return newWorkspace(r, dirs, budget, s), nil
}
