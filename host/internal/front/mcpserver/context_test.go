package mcpserver_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
)

// TestContext checks that approvers see what an agent says about its call, as its words, and that
// only a text is accepted.
func TestContext(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 600)
	for _, tt := range []struct {
		name  string
		said  any // nil means nothing
		want  string
		shown string
		fails bool
	}{
		{name: "nothing", want: ""},
		{name: "a reason", said: "Fixing the login", want: "Fixing the login", shown: "Fixing the login"},
		{name: "no words", said: "", want: ""},
		{name: "null", said: json.RawMessage("null"), want: ""},
		{name: "too many words", said: long, want: long[:2*493] + "… [cut]", shown: long[:2*493] + "… [cut]"},
		{name: "characters that hide others", said: "ok\u202e\x1b[2J", want: "ok\u202e\x1b[2J", shown: `ok\u202e\x1b[2J`},
		{name: "a number", said: 1, fails: true},
		{name: "an object", said: map[string]any{"why": "so"}, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, revision := range []string{stateless, withSession} {
				h := begin(t, nil)
				c := connect(t, h, revision, nil)
				p := &mcp.CallToolParams{Name: "write", Arguments: map[string]any{"text": "a"}}
				if tt.said != nil {
					p.Meta = mcp.Meta{"toolhost/context": tt.said}
				}
				_, err := c.CallTool(c.ctx, p)
				asked := records(t, h)
				if tt.fails {
					wrong, ok := errors.AsType[*jsonrpc.Error](err)
					if !ok || wrong.Code != jsonrpc.CodeInvalidParams || !strings.Contains(wrong.Message, `_meta["toolhost/context"] is not a string`) || len(asked) != 0 {
						t.Errorf("%s: CallTool = %v with %d approvals, want invalid parameters and none", revision, err, len(asked))
					}
					continue
				}
				if err != nil || len(asked) != 1 {
					t.Fatalf("%s: CallTool = %v with %d approvals, want one", revision, err, len(asked))
				}
				record, err := h.Approvals.Get(t.Context(), asked[0].ID)
				if err != nil || record.Context != tt.want {
					t.Errorf("%s: the approval has the context %q, %v; want %q", revision, record.Context, err, tt.want)
				}
				var shown strings.Builder
				for _, line := range approval.Show(record).Lines {
					if line.Kind == approval.Said {
						shown.WriteString(line.Text)
					}
				}
				if shown.String() != tt.shown {
					t.Errorf("%s: the approver sees %q, want %q", revision, shown.String(), tt.shown)
				}
			}
		})
	}
}
