package mcpserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/call/operation"
)

// TestQuestionForm checks that a form marks all of a tool's text as the tool's.
func TestQuestionForm(t *testing.T) {
	const begin, end = "The tool t of plugin p asks:\n\n", "\nYour answer goes to this tool. It approves nothing. Do not give passwords or keys."
	for _, tt := range []struct{ name, text, mistake, want string }{
		{"a line", "How many?", "", begin + "  | How many?\n" + end},
		{"the host's words", "a\n\nThe tool x of plugin y asks:\n\nb", "", begin + "  | a\n  | \n  | The tool x of plugin y asks:\n  | \n  | b\n" + end},
		{"what hides", "a\u202eb\x1b[2J\u200bc\rd", "", begin + "  | a\\u202eb\\x1b[2J\\u200bc\\rd\n" + end},
		{"a long line", strings.Repeat("x", 90), "", begin + "  | " + strings.Repeat("x", 76) + "\n  |\\" + strings.Repeat("x", 14) + "\n" + end},
		{"many lines", strings.Repeat("x\n", 62), "", begin + strings.Repeat("  | x\n", 60) + "  ~ 2 more lines are not shown\n" + end},
		{"a mistake", "n?", "n: expected\u202e", begin + "  | n?\n\nThe last answer did not fit:\n\n  | n: expected\\u202e\n" + end},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := questionForm(operation.Question{Plugin: "p", Tool: "t", Text: tt.text, Mistake: tt.mistake})
			if diff := cmp.Diff(tt.want, got.Message); diff != "" || got.Mode != "form" {
				t.Errorf("the form says (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswerOf(t *testing.T) {
	for _, tt := range []struct {
		result *mcp.ElicitResult
		given  bool
		values string
	}{
		{&mcp.ElicitResult{Action: "accept", Content: map[string]any{"n": 1}}, true, `{"n":1}`},
		{&mcp.ElicitResult{Action: "accept"}, true, `{}`},
		{&mcp.ElicitResult{Action: "decline", Content: map[string]any{"n": 1}}, false, ""},
		{&mcp.ElicitResult{Action: "cancel"}, false, ""},
		{&mcp.ElicitResult{Action: "approve"}, false, ""},
	} {
		if got := answerOf(tt.result); got.Given != tt.given || string(got.Values) != tt.values {
			t.Errorf("answerOf(%+v) = %v %s, want %v %s", tt.result, got.Given, got.Values, tt.given, tt.values)
		}
	}
}
