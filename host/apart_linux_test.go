package main

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/client"
)

// apart has plugins with one process for all users. probe_count asks, the others do not.
const apart = `
policy {
  commands {
    allow = ["tail"]
    text  = "allow"
  }
}
plugin "memory" {
  tier   = "side_effecting"
  claims = "trust"
  approval { side_effecting = "allow" }
  sandbox {
    filesystem { workspace = "none" }
  }
}
plugin "shell" {
  tier   = "privileged"
  claims = "trust"
  sandbox {
    filesystem { exec = ["system"] }
  }
}
`

// person is a user with an agent and an approver.
type person struct {
	owned

	approver string
}

// makes makes a call and returns its outcome, which may be pending.
func (p person) makes(t *testing.T, tool string, arguments map[string]any, header ...string) client.Outcome {
	t.Helper()
	header = append(header, "Toolhost-Session", p.session, "Prefer", "approval-wait=0")
	status, text, err := p.h.send("POST", "/v1/calls", p.token, asJSON(map[string]any{"tool": tool, "arguments": arguments}), header...)
	return outcomeOf(t, status, text, err)
}

// said makes a call that must succeed and returns its text.
func (p person) said(t *testing.T, tool string, arguments map[string]any) string {
	t.Helper()
	o := p.makes(t, tool, arguments)
	if o.Result == nil || o.Error != nil {
		t.Fatalf("%s(%v) = %s", tool, arguments, asJSON(o))
	}
	return o.Result.Content
}

// finds reports whether the answer to a request exists and has a text.
func (p person) finds(t *testing.T, token, path, text string) bool {
	t.Helper()
	status, answer, err := p.h.send("GET", path, token, "")
	if err != nil || status >= 500 {
		t.Fatalf("GET %s = %d %s, %v", path, status, answer, err)
	}
	return status < 300 && strings.Contains(answer, text)
}

// asks makes a call that waits for a person.
func (p person) asks(t *testing.T) client.Outcome {
	t.Helper()
	o := p.makes(t, "probe_count", map[string]any{"note": rand.Text()})
	if o.ApprovalID == "" {
		t.Fatalf("probe_count = %s, want that it waits for a person", asJSON(o))
	}
	return o
}

// grants approves a call and lets later ones run unasked. It returns the id of the grant.
func (p person) grants(t *testing.T) string {
	t.Helper()
	path := "/v1/approvals/" + p.asks(t).ApprovalID
	var record struct {
		ArgumentsHash string         `json:"arguments_hash"`
		PreviewDigest string         `json:"preview_digest,omitempty"`
		Grant         map[string]any `json:"grant"`
	}
	decode(t, p.h.must(t, http.StatusOK, "GET", path, p.approver, ""), &record)
	record.Grant = map[string]any{}
	var approved struct {
		Grants []struct {
			ID string `json:"id"`
		} `json:"grants"`
	}
	decode(t, p.h.must(t, http.StatusOK, "POST", path+"/approve", p.approver, asJSON(record)), &approved)
	if len(approved.Grants) != 1 {
		t.Fatalf("the approval has the grants %+v, want one", approved.Grants)
	}
	return approved.Grants[0].ID
}

// TestUsersSeeTheirOwn has one user leave something of each kind, and another user look for it with the
// same names and, where there is one, the same id and session. The control is the first user, who
// looks in the same way and finds it.
func TestUsersSeeTheirOwn(t *testing.T) {
	t.Parallel()
	tokens := "auth {\n"
	token := func(name, user, role string) string {
		block, secret := agentToken(t, name, user)
		tokens += strings.Replace(block, `["agent"]`, `["`+role+`"]`, 1)
		return secret
	}
	ada := person{owned: owned{token: token("ada", "ada", "agent"), session: "one"}, approver: token("ada-lead", "ada", "approver")}
	bob := person{owned: owned{token: token("bob", "bob", "agent"), session: "one"}, approver: token("bob-lead", "bob", "approver")}
	ada.h = serve(t, writeConfig(t, listening+apart+counting+tokens+"}\n"))
	bob.h = ada.h

	for _, tt := range []struct {
		kind string
		// leave has ada leave something; found reports whether a user finds it.
		leave func() (found func(by person) bool)
	}{
		{"a note", func() func(person) bool {
			note := rand.Text()
			ada.said(t, "memory_save", map[string]any{"key": "user/editor", "content": note})
			return func(by person) bool {
				got := by.makes(t, "memory_get", map[string]any{"key": "user/editor"})
				return strings.Contains(asJSON(got)+by.said(t, "memory_list", nil)+by.said(t, "memory_search", map[string]any{"query": "editor"}), note)
			}
		}},
		{"a job", func() func(person) bool {
			ada.said(t, "shell_background", map[string]any{"command": "tail -f hello.txt"})
			return func(by person) bool {
				return strings.Contains(by.said(t, "process_list", nil), "tail -f")
			}
		}},
		{"a long result", func() func(person) bool {
			o := ada.makes(t, "probe_lines", map[string]any{"n": 200_000})
			whole, _ := o.Result.Metadata["whole_result"].(map[string]any)
			if whole["handle"] == nil {
				t.Fatalf("the result is not cut: %v", o.Result.Metadata)
			}
			return func(by person) bool {
				return strings.Contains(asJSON(by.makes(t, "result_read", map[string]any{"handle": whole["handle"]})), "as long as others")
			}
		}},
		{"a cached result", func() func(person) bool {
			cached := ada.said(t, "probe_random", nil)
			return func(by person) bool { return by.said(t, "probe_random", nil) == cached }
		}},
		{"an idempotency key", func() func(person) bool {
			again := func(by person) string {
				return by.makes(t, "probe_tally", map[string]any{"note": "once"}, "Idempotency-Key", "key").ToolCallID
			}
			first := again(ada)
			return func(by person) bool { return again(by) == first }
		}},
		{"a call", func() func(person) bool {
			id := ada.asks(t).ToolCallID
			return func(by person) bool {
				return by.finds(t, by.token, "/v1/calls/"+id, id) || by.finds(t, by.token, "/v1/calls", id)
			}
		}},
		{"an approval", func() func(person) bool {
			id := ada.asks(t).ApprovalID
			return func(by person) bool {
				return by.finds(t, by.approver, "/v1/approvals/"+id, id) || by.finds(t, by.approver, "/v1/approvals", id)
			}
		}},
		{"an MCP session", func() func(person) bool {
			c := connectHTTP(t, ada.h, ada.token, "2025-11-25", "test", nil)
			return func(by person) bool {
				status, text, err := by.h.send("POST", "/mcp", by.token, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
					"Mcp-Session-Id", c.ID(), "Mcp-Protocol-Version", "2025-11-25", "Accept", "application/json, text/event-stream")
				if err != nil || status != http.StatusOK && status != http.StatusNotFound {
					t.Fatalf("a ping = %d %s, %v", status, text, err)
				}
				return status == http.StatusOK
			}
		}},
		{"events", func() func(person) bool {
			streams := map[string]<-chan told{ada.token: follow(t, ada.h, ada.token, ""), bob.token: follow(t, ada.h, bob.token, "")}
			id := ada.makes(t, "probe_tally", map[string]any{"note": "seen"}).ToolCallID
			return func(by person) (found bool) {
				last := by.makes(t, "probe_tally", map[string]any{"note": "last"}).ToolCallID
				for e := range streams[by.token] {
					found = found || e.data["id"] == id
					if e.kind == "tool.result" && e.data["id"] == last {
						break
					}
				}
				return found
			}
		}},
		{"a grant", func() func(person) bool { // the last one: calls run unasked from then on
			id := ada.grants(t)
			return func(by person) bool {
				return by.finds(t, by.approver, "/v1/grants", id) || by.makes(t, "probe_count", map[string]any{"note": "unasked"}).Status == client.Success
			}
		}},
	} {
		found := tt.leave()
		if found(bob) {
			t.Errorf("another user finds %s", tt.kind)
		}
		if !found(ada) {
			t.Errorf("its own user does not find %s: the search finds nothing at all", tt.kind)
		}
	}
}
