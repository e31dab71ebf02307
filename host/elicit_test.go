package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
)

// approveForm is the answer of a user who approves a call.
func approveForm() *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}
}

// byHand returns the options of a client that can show forms. Only the test sends answers in
// its rounds.
func byHand() *mcp.ClientOptions {
	opts := answering(nil)
	opts.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	return opts
}

// agentToken creates an agent's token and returns its block and secret. An empty user means
// the local user.
func agentToken(t *testing.T, name, user string) (block, secret string) {
	t.Helper()
	block, err := tokenBlock(name, blockOf{user: auth.LocalUser(user), roles: []string{"agent"}})
	if err != nil {
		t.Fatal(err)
	}
	secret, digest := auth.NewToken()
	return strings.Replace(block, "DIGEST", digest, 1), secret
}

// TestRequestStates answers the question about a call with states of other questions. The
// control sends the right state, which runs the call; sent again, it repeats the answer, and
// the call does not run again.
func TestRequestStates(t *testing.T) {
	t.Parallel()
	bob, bobs := agentToken(t, "bob", "bob")
	other, others := agentToken(t, "other", "")
	h := serve(t, writeConfig(t, listening+counting+"auth {\n"+asker+bob+other+"}\n"))
	s := connectAsker(t, h, revisions[0], byHand())
	ask := func(s *session, tool, n, state string, answer *mcp.ElicitResult) (*mcp.CallToolResult, error) {
		p := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"note": n}, RequestState: state}
		if answer != nil {
			p.InputResponses = mcp.InputResponseMap{"approval": answer}
		}
		return s.CallTool(t.Context(), p)
	}
	first, err := ask(s, "probe_count", "one", "", nil)
	if err != nil || !first.NeedsInput() || first.RequestState == "" {
		t.Fatalf("the call came to %+v, %v; want that it needs input", first, err)
	}
	question, ok := first.InputRequests["approval"].(*mcp.ElicitParams)
	if !ok || !strings.Contains(question.Message, "probe_count") || !strings.Contains(question.Message, "one") {
		t.Fatalf("the form is %+v, want one that shows the call", first.InputRequests)
	}
	state := first.RequestState
	for _, tt := range []struct {
		name, token    string
		tool, n, state string
	}{
		{"a changed state", askers, "probe_count", "one", state[:len(state)-2] + "AA"},
		{"a cut state", askers, "probe_count", "one", state[:len(state)/2]},
		{"no state of ours", askers, "probe_count", "one", "eyJmbGlnaHQiOiJ0Y18xIn0"},
		{"a long one", askers, "probe_count", "one", strings.Repeat(state, 50)},
		{"other arguments", askers, "probe_count", "two", state},
		{"another tool", askers, "probe_tally", "one", state},
		{"another user", bobs, "probe_count", "one", state},
		{"the local token of the user", h.token, "probe_count", "one", state},
		{"another token of the user", others, "probe_count", "one", state},
	} {
		t.Run(tt.name, func(t *testing.T) {
			foe := connectHTTP(t, h, tt.token, revisions[0], testClient, byHand())
			r, err := ask(foe, tt.tool, tt.n, tt.state, approveForm())
			if err == nil || !strings.Contains(err.Error(), "request state") {
				t.Errorf("the answer is %+v, %v; want an error about the request state", r, err)
			}
		})
	}
	// Without a state it is a new call, whatever else it sends.
	if r, err := ask(s, "probe_count", "two", "", approveForm()); err != nil || !r.NeedsInput() {
		t.Errorf("an answer without a state came to %+v, %v; want that the call is asked about", r, err)
	}
	if got := h.counted(); len(got) != 0 {
		t.Fatalf("before anybody has approved anything, %v ran", got)
	}

	for round := range 3 {
		r, err := ask(s, "probe_count", "one", state, approveForm())
		if err != nil || r.IsError || r.NeedsInput() {
			t.Errorf("control: round %d came to %+v, %v; want the result", round, r, err)
		}
	}
	if got := h.counted(); len(got) != 1 {
		t.Errorf("an approval that was given three times let %v run, want one call", got)
	}
}

// writeOf returns a call that writes a text to a.txt.
func writeOf(text string) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "write_file", Arguments: map[string]any{"path": "a.txt", "content": text}}
}

// TestElicitationOfOthers has clients that the admin does not trust ask for forms, under any
// name: none is shown, and no answer counts. The control is a client with a token for it.
func TestElicitationOfOthers(t *testing.T) {
	t.Parallel()
	named, nameds := agentToken(t, testClient, "")
	h := serve(t, writeConfig(t, listening+writing+impatient+"auth {\n"+asker+named+"}\n"))
	with := func(token, client string) connector {
		return func(t *testing.T, h *host, revision string, opts *mcp.ClientOptions) *session {
			t.Helper()
			return connectHTTP(t, h, token, revision, client, opts)
		}
	}
	for _, tt := range []struct {
		name    string
		connect connector
		trusted bool
	}{
		{"the local token, by the name of a trusted token", with(h.token, "asker"), false},
		{"the local token, by the name of a trusted client", with(h.token, testClient), false},
		{"the local token, by no name", with(h.token, ""), false},
		{"standard input and output", transports["stdio"], false},
		{"a token without elicitation", with(nameds, "asker"), false},
		{"standard input and output with a token without elicitation", withTokenFile(nameds), false},
		{"control: standard input and output with a token with elicitation", withTokenFile(askers), true},
		{"control: a token with elicitation, by whatever name", with(askers, "mallory"), true},
	} {
		for _, revision := range revisions {
			t.Run(tt.name+" "+revision, func(t *testing.T) {
				var asked atomic.Int32
				s := tt.connect(t, h, revision, &mcp.ClientOptions{
					ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						asked.Add(1)
						return approveForm(), nil
					},
				})
				r, err := s.CallTool(t.Context(), writeOf(t.Name()))
				if err != nil {
					t.Fatal(err)
				}
				if got := asked.Load() > 0; got != tt.trusted || r.IsError == tt.trusted {
					t.Errorf("the user was asked %d times, and the call came to %q", asked.Load(), textOf(r))
				}
				if !tt.trusted {
					h.answer(t, "reject", h.open(t, 1)[0].ID)
					return
				}
				for _, row := range h.journal(t, "--tool", "write_file", "--limit", "2") {
					if row.ApprovedBy != "user" || row.Via != "elicitation" || row.Approval == "" {
						t.Errorf("row %d of the journal says %+v, want an approval over elicitation", row.Seq, row)
					}
				}
			})
		}
	}
}

// TestOneDecidesBefore leaves a form open while another approver decides: the call continues,
// and the form is withdrawn.
func TestOneDecidesBefore(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing+elicitation))
	for _, revision := range revisions[1:] {
		t.Run(revision, func(t *testing.T) {
			taken := make(chan struct{})
			s := connectAsker(t, h, revision, &mcp.ClientOptions{
				ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					h.answer(t, "approve", h.open(t, 1)[0].ID)
					<-ctx.Done()
					close(taken)
					return nil, ctx.Err()
				},
			})
			if r, err := plainWrite(t, h, s); err != nil || r.IsError || h.file("a.txt") != "hello\n" {
				t.Errorf("the call came to %+v, %v", r, err)
			}
			<-taken
			if err := removeFile(h, "a.txt"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFormsThatAreClosed closes the form or sends nonsense: others decide. Declining is a
// decision.
func TestFormsThatAreClosed(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing+impatient+elicitation))
	for _, revision := range revisions {
		for _, tt := range []struct {
			name   string
			answer *mcp.ElicitResult
			code   string
		}{
			{"closed", &mcp.ElicitResult{Action: "cancel"}, "pending_approval"},
			{"an unknown action", &mcp.ElicitResult{Action: "approve", Content: approveForm().Content}, "pending_approval"},
			{"declined", &mcp.ElicitResult{Action: "decline"}, "rejected"},
		} {
			t.Run(tt.name+" "+revision, func(t *testing.T) {
				var asked atomic.Int32
				s := connectAsker(t, h, revision, &mcp.ClientOptions{
					ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						asked.Add(1)
						return tt.answer, nil
					},
				})
				r, err := s.CallTool(t.Context(), writeOf(t.Name()))
				if err != nil || codeOf(r) != tt.code || h.file("a.txt") != "" {
					t.Errorf("the call came to %+v, %v; want code %s", r, err, tt.code)
				}
				if got := asked.Load(); got != 1 {
					t.Errorf("the user was asked %d times, want once", got)
				}
				if tt.code == "pending_approval" {
					h.answer(t, "reject", h.open(t, 1)[0].ID)
				}
			})
		}
	}
}

// TestAlwaysOverElicitation answers "always": later calls run without asking.
func TestAlwaysOverElicitation(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions {
		h := serve(t, writeConfig(t, listening+writing+elicitation))
		var asked atomic.Int32
		s := connectAsker(t, h, revision, &mcp.ClientOptions{
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked.Add(1)
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "always"}}, nil
			},
		})
		for range 2 {
			if r, err := plainWrite(t, h, s); err != nil || r.IsError {
				t.Fatalf("%s: the call came to %+v, %v", revision, r, err)
			}
		}
		if got := asked.Load(); got != 1 {
			t.Errorf("%s: the user was asked %d times, want once", revision, got)
		}
		var all []approval.Record
		decode(t, h.ok(t, "approvals", "list", "--all", "--json"), &all)
		if len(all) != 1 || all[0].State != approval.Spent || all[0].Via != "elicitation" {
			t.Errorf("%s: the approvals are %+v, want one over elicitation", revision, all)
		}
	}
}
