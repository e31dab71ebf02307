package mcpserver

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
)

// TestForm checks that a form shows a call whole or not at all, and offers only possible
// answers.
func TestForm(t *testing.T) {
	long := func(n int) json.RawMessage { return json.RawMessage(`{"text":"` + strings.Repeat("x", n) + `"}`) }
	once, standing := []string{"approve", "reject"}, []string{"approve", "always", "reject"}
	for _, tt := range []struct {
		name      string
		arguments json.RawMessage
		standing  bool
		session   string
		want      []string // the answers; nil means no form
	}{
		{"a call that is confirmed each time", long(10), false, "s1", once},
		{"one that may be let run from now on", long(10), true, "", standing},
		{"one that may be let run in its session", long(10), true, auth.NewSession(), []string{"approve", "session", "always", "reject"}},
		{"a long one", long(32 << 10), true, "", standing},
		{"one that does not fit into a form", long(64 << 10), true, "", nil},
		{"one of which not all is at hand", nil, true, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := form(approval.Record{ID: "ap_1", Tool: "put", State: approval.Open, Arguments: tt.arguments, Standing: tt.standing, Session: tt.session})
			if got == nil || tt.want == nil {
				if got != nil || tt.want != nil {
					t.Fatalf("the form is %+v, want the answers %q", got, tt.want)
				}
				return
			}
			text, err := json.Marshal(got.RequestedSchema)
			if err != nil {
				t.Fatal(err)
			}
			var schema struct {
				Properties struct {
					Decision struct {
						Enum        []string `json:"enum"`
						Description string   `json:"description"`
					} `json:"decision"`
				} `json:"properties"`
			}
			if err := json.Unmarshal(text, &schema); err != nil {
				t.Fatal(err)
			}
			decision := schema.Properties.Decision
			if !slices.Equal(decision.Enum, tt.want) || strings.Contains(decision.Description, "always") != tt.standing {
				t.Errorf("the form offers %q, %q; want %q", decision.Enum, decision.Description, tt.want)
			}
			var shown struct{ Text string }
			if err := json.Unmarshal(tt.arguments, &shown); err != nil || strings.Count(got.Message, "x") < len(shown.Text) {
				t.Errorf("the form does not show all of the call: %v", err)
			}
		})
	}
}
