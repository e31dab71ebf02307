package pipeline_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestAboutACall checks what the journal's rows say that a call is about, by the roles of its
// arguments.
func TestAboutACall(t *testing.T) {
	spec := addSpec()
	spec.Tier, spec.HasPreview = tool.ReadOnly, false
	spec.InputSchema = json.RawMessage(`{"type":"object","properties":{
		"command":{"type":"string","description":"a command","x-role":"command"},
		"env":{"type":"array","description":"variables","x-role":"command","items":{"type":"string"}},
		"argv":{"type":"array","description":"words","x-role":"argv","items":{"type":"string"}},
		"input":{"type":"string","description":"input","x-role":"script"},
		"url":{"type":"string","description":"an address","x-role":"url"},
		"token":{"type":"string","description":"a secret","x-role":"secret"},
		"repo":{"type":"string","description":"a repository","x-role":"repository","default":"."},
		"files":{"type":"array","description":"files","x-role":"path","items":{"type":"string"}},
		"note":{"type":"string","description":"a note"}}}`)
	const secret = "open-sesame-and-be-quick-about-it"
	h := newHost(t, pipeline.Options{Redact: strings.NewReplacer(secret, "(hidden)").Replace, Runner: &counter{}, Roots: []string{"/project"}, Policy: rules(t, policy.Options{
		Rules: []policy.Rule{{Name: "none", Tools: []string{"add"}, Verdict: policy.Deny}}, // no person is asked
	})}, spec)
	long := strings.Repeat("ä", 300)
	for _, tt := range []struct {
		name, arguments, want string
	}{
		{"a folder", `{}`, "."},
		{"a file", `{"files":["a.txt"]}`, "a.txt"},
		{"files", `{"files":["a.txt","b\u202e","c"]}`, "a.txt and 2 more"},
		{"a repository", `{"repo":"sub"}`, "sub"},
		{"an address", `{"url":"https://example.com/?a=1","files":["a"]}`, "https://example.com/?a=1"},
		{"a command", `{"command":"ls -l","files":["a"],"url":"x"}`, "ls -l"},
		{"a command with variables", `{"command":"ls","env":["A=1"]}`, "ls and 1 more"},
		{"a program", `{"argv":["git","log","-1"]}`, "git log -1"},
		{"input", `{"input":"1+1\n"}`, "1+1\n"},
		{"a secret", `{"token":"sesame","note":"x"}`, "."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			outcome := h.Call(t.Context(), pipeline.Request{Caller: request("", "").Caller, Tool: "add", Arguments: []byte(tt.arguments)})
			if got := h.rows(t, outcome.ID, 1)[0].About; got != tt.want {
				t.Errorf("the row of %s is about %q, want %q", tt.arguments, got, tt.want)
			}
		})
	}
	// A cut does not leave a part of a secret that the journal would not find.
	asked := request("add", `{"files":["`+strings.Repeat("x", 180)+secret+`"]}`)
	asked.Context = strings.Repeat("x", 480) + secret
	row := h.rows(t, h.Call(t.Context(), asked).ID, 1)[0]
	if said := row.About + row.Context; strings.Contains(said, "open-") || !strings.Contains(row.About, "(hidden") {
		t.Errorf("the row shows a part of a secret: %q, %q", row.About, row.Context)
	}
	outcome := h.Call(t.Context(), request("add", `{"files":["`+long+`"]}`))
	if got := h.rows(t, outcome.ID, 1)[0].About; len(got) > 250 || !strings.HasPrefix(got, "ää") {
		t.Errorf("the row of a long name is about %q (%d bytes), want it shortened", got, len(got))
	}
}
