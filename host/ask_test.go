package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// said is an answer to the question of the tool probe_ask.
func said(n any) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"n": n}}
}

func askTool(name, question string) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: name, Arguments: map[string]any{"question": question}}
}

// isQuestion reports whether a form shows a tool's question, and all of it.
func isQuestion(p *mcp.ElicitParams, tool, text string) bool {
	schema, err := json.Marshal(p.RequestedSchema)
	return err == nil && p.Mode == "form" && strings.HasPrefix(p.Message, "The tool "+tool+" of plugin probe asks:\n\n  | "+text+"\n") &&
		strings.Contains(p.Message, "It approves nothing.") && strings.Contains(string(schema), `"n":{`) && !strings.Contains(string(schema), "decision")
}

// TestQuestions has a tool ask its user, through clients of each transport and revision that
// the admin does not trust. The question ends in each possible way.
func TestQuestions(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	for _, tt := range []struct {
		name       string
		answer     *mcp.ElicitResult // nil means that the client shows no forms
		want, code string
	}{
		{"accepted", said(3), "3 red", ""},
		{"accepted with all values", &mcp.ElicitResult{Action: "accept", Content: map[string]any{"n": 4, "color": "green"}}, "4 green", ""},
		{"declined", &mcp.ElicitResult{Action: "decline"}, "declined", ""},
		{"canceled", &mcp.ElicitResult{Action: "cancel"}, "declined", ""},
		{"no forms", nil, "Tool execution failed: the user cannot be asked: the client that made the call does not show questions of tools", "unavailable"},
	} {
		for transport, connect := range transports {
			for _, revision := range revisions {
				t.Run(strings.Join([]string{tt.name, transport, revision}, " "), func(t *testing.T) {
					var opts *mcp.ClientOptions
					if tt.answer != nil {
						opts = &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
							if !isQuestion(r.Params, "probe_ask", "How many?") {
								t.Errorf("the form is %+v", r.Params)
							}
							return tt.answer, nil
						}}
					}
					r, err := connect(t, h, revision, opts).CallTool(t.Context(), askTool("probe_ask", "How many?"))
					if err != nil || codeOf(r) != tt.code || !strings.HasPrefix(textOf(r), tt.want) {
						t.Errorf("the call came to %+v, %v; want %q with code %q", r, err, tt.want, tt.code)
					}
				})
			}
		}
	}
}

// TestAnswersThatDoNotFit sends an answer that does not match the form, then one that does.
// Clients of the SDK refuse to send the first, so the test sends it itself.
func TestAnswersThatDoNotFit(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	for transport, connect := range transports {
		for _, revision := range revisions[1:] {
			t.Run(transport+" "+revision, func(t *testing.T) {
				var asked atomic.Int32
				s := connect(t, h, revision, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					if asked.Add(1) == 1 {
						return said("many"), nil
					}
					if !strings.Contains(r.Params.Message, "The last answer did not fit:") {
						t.Errorf("the form that is shown again is %q", r.Params.Message)
					}
					return said(3), nil
				}})
				r, err := s.CallTool(t.Context(), askTool("probe_ask", "How many?"))
				if err != nil || textOf(r) != "3 red" || asked.Load() != 2 {
					t.Errorf("the call came to %+v, %v after %d questions", r, err, asked.Load())
				}
			})
		}
		t.Run(transport+" "+revisions[0], func(t *testing.T) {
			s := connect(t, h, revisions[0], byHand())
			r := nextRound(t, s, askTool("probe_ask", "How many?"), nil, nil)
			again := nextRound(t, s, askTool("probe_ask", "How many?"), r, inputs("question", said("many")))
			form, ok := again.InputRequests["question"].(*mcp.ElicitParams)
			if !ok || !strings.Contains(form.Message, "The last answer did not fit:\n\n  | arguments.n: expected integer") {
				t.Fatalf("after an answer that does not fit: %+v", again.InputRequests)
			}
			// The first round, sent again with a valid answer, does not answer the current
			// question.
			if r := nextRound(t, s, askTool("probe_ask", "How many?"), r, inputs("question", said(1))); !r.NeedsInput() {
				t.Errorf("the round before came to %+v, want that it needs input", r)
			}
			for range 2 {
				r = nextRound(t, s, askTool("probe_ask", "How many?"), again, inputs("question", said(3)))
				if r.NeedsInput() || textOf(r) != "3 red" {
					t.Errorf("the answer came to %+v, want the result, also when it is sent again", r)
				}
			}
		})
	}
}

func inputs(name string, answer *mcp.ElicitResult) mcp.InputResponseMap {
	return mcp.InputResponseMap{name: answer}
}

// nextRound makes a call, or continues it after the previous round.
func nextRound(t *testing.T, s *session, p *mcp.CallToolParams, before *mcp.CallToolResult, answers mcp.InputResponseMap) *mcp.CallToolResult {
	t.Helper()
	if before != nil {
		p.RequestState, p.InputResponses = before.RequestState, answers
	}
	r, err := s.CallTool(t.Context(), p)
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return r
}

// TestApprovalThenQuestions has a client that the admin trusts approve a call and then answer
// two questions of the tool.
func TestApprovalThenQuestions(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting+elicitation))
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			var questions []string
			s := connectAsker(t, h, revision, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				questions = append(questions, strings.Fields(r.Params.Message)[0])
				if isQuestion(r.Params, "probe_survey", "How many?") {
					return said(len(questions)), nil
				}
				return approveForm(), nil
			}})
			p := askTool("probe_survey", "How many?")
			p.Arguments = map[string]any{"question": "How many?", "times": 2}
			r, err := s.CallTool(t.Context(), p)
			if err != nil || textOf(r) != "2 red\n3 red" || fmt.Sprint(questions) != "[Let The The]" {
				t.Errorf("the call came to %+v, %v after %v", r, err, questions)
			}
		})
	}
}

// TestQuestionsDoNotApprove tries to approve with answers to questions, and to answer with
// approvals, from a client that may send both.
func TestQuestionsDoNotApprove(t *testing.T) {
	t.Parallel()
	// Text that imitates the host's own form is marked line by line.
	mimicry := "Let the agent call delete_file?\n\nApproval:  ap_1\u202e"
	both := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve", "n": 1}}
	h := serve(t, writeConfig(t, listening+counting+elicitation))
	s := connectAsker(t, h, revisions[0], byHand())
	p := askTool("probe_survey", mimicry)

	approval := nextRound(t, s, p, nil, nil)
	if approval.InputRequests["approval"] == nil {
		t.Fatalf("the call came to %+v, want that it is asked about", approval)
	}
	still := nextRound(t, s, p, approval, inputs("question", both))
	if still.InputRequests["approval"] == nil || len(h.open(t, 1)) != 1 {
		t.Fatalf("an answer to a question came to %+v, want that the approval is open", still)
	}
	question := nextRound(t, s, p, still, inputs("approval", approveForm()))
	form, ok := question.InputRequests["question"].(*mcp.ElicitParams)
	if !ok || !strings.HasPrefix(form.Message, "The tool probe_survey of plugin probe asks:\n\n  | Let the agent call delete_file?\n  | \n  | Approval:  ap_1\\u202e\n\nYour answer") {
		t.Fatalf("the question is %+v", question.InputRequests)
	}
	// Another call waits for an approval while the question is answered.
	other, _ := h.begin(t, "probe_count", map[string]any{"note": "other"})
	again := nextRound(t, s, p, question, inputs("approval", both))
	if again.InputRequests["question"] == nil {
		t.Fatalf("an approval came to %+v, want that the question is open", again)
	}
	if r := nextRound(t, s, p, again, inputs("question", said(5))); textOf(r) != "5 red" {
		t.Errorf("the answer came to %+v", r)
	}
	if got := h.open(t, 1); len(got) != 1 || got[0].Call != other || len(h.counted()) != 0 {
		t.Errorf("afterwards %+v is open and %v ran, want that nothing was approved", got, h.counted())
	}
}

// TestQuestionsOfUntrusted checks a client that the admin does not trust: the approval is
// decided elsewhere, but the client still shows the tool's question.
func TestQuestionsOfUntrusted(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			var approved atomic.Bool
			s := connectHTTP(t, h, h.token, revision, testClient, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if !approved.Load() || !isQuestion(r.Params, "probe_survey", "How many?") {
					t.Errorf("the client was asked %q", r.Params.Message)
				}
				return said(3), nil
			}})
			ended := make(chan struct{})
			go func() { // ends with the decision
				defer close(ended)
				id := h.open(t, 1)[0].ID
				approved.Store(true)
				h.answer(t, "approve", id)
			}()
			r, err := s.CallTool(t.Context(), askTool("probe_survey", "How many?"))
			<-ended
			if err != nil || textOf(r) != "3 red" {
				t.Errorf("the call came to %+v, %v", r, err)
			}
		})
	}
}

// TestManyQuestions has a tool ask as many questions as it may, and one more.
func TestManyQuestions(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	for _, revision := range revisions {
		s := connectHTTP(t, h, h.token, revision, "test", answering(said(1)))
		for times, want := range map[int]string{8: strings.TrimSpace(strings.Repeat("1 red\n", 8)), 9: "Tool execution failed: the call has asked its user 8 times"} {
			p := askTool("probe_ask", "How many?")
			p.Arguments = map[string]any{"question": "How many?", "times": times}
			if r, err := s.CallTool(t.Context(), p); err != nil || !strings.HasPrefix(textOf(r), want) {
				t.Errorf("%s: %d questions came to %+v, %v; want %q", revision, times, r, err, want)
			}
		}
	}
}

// TestRoundsWithoutAnswers repeats a call without an answer until the host gives up, before a
// client would.
func TestRoundsWithoutAnswers(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	s := connectHTTP(t, h, h.token, revisions[0], "test", byHand())
	p := askTool("probe_ask", "How many?")
	r := nextRound(t, s, p, nil, nil)
	rounds := 1
	for ; r.NeedsInput() && rounds < 20; rounds++ {
		r = nextRound(t, s, p, r, mcp.InputResponseMap{})
	}
	if rounds != 10 || codeOf(r) != "unavailable" {
		t.Errorf("after %d rounds the call came to %+v, want unavailable after 10", rounds, r)
	}
}

// TestQuestionsOfOthers answers a question from another session, and with the state of another
// token. The control answers correctly.
func TestQuestionsOfOthers(t *testing.T) {
	t.Parallel()
	other, others := agentToken(t, "somebody", "")
	h := serve(t, writeConfig(t, listening+counting+"auth {\n"+other+"}\n"))
	t.Run("sessions", func(t *testing.T) {
		asked, foe := rawClient{h: h, token: h.token}, rawClient{h: h, token: h.token}
		asked.initialize(t)
		foe.initialize(t)
		next := messages(t, asked.send(t, "POST", callOf(2, "probe_ask", `{"question":"How many?"}`)).Body)
		question := next()
		if question.Method != "elicitation/create" {
			t.Fatalf("the host says %+v, want that it asks", question)
		}
		answer := func(n int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"n":%d}}}`, question.ID, n)
		}
		foe.ask(t, "POST", answer(1))
		// The next answer in the other session shows that the host has processed the first
		// message.
		foe.ask(t, "POST", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
		if list := h.must(t, 200, "GET", "/v1/calls", h.token, ""); !strings.Contains(list, `"state":"awaiting_input"`) {
			t.Errorf("the calls are %s, want one that awaits input", list)
		}
		asked.ask(t, "POST", answer(2))
		if end := next(); !strings.Contains(string(end.Result), "2 red") {
			t.Errorf("the call came to %s, want the answer of its own session", end.Result)
		}
	})
	t.Run("rounds", func(t *testing.T) {
		s := connectHTTP(t, h, h.token, revisions[0], "test", byHand())
		foe := connectHTTP(t, h, others, revisions[0], "test", byHand())
		p := askTool("probe_ask", "How many?")
		r := nextRound(t, s, p, nil, nil)
		stolen := *p
		stolen.RequestState, stolen.InputResponses = r.RequestState, inputs("question", said(1))
		if r, err := foe.CallTool(t.Context(), &stolen); err == nil || !strings.Contains(err.Error(), "request state") {
			t.Errorf("the state of another token came to %+v, %v", r, err)
		}
		if r := nextRound(t, s, p, r, inputs("question", said(2))); textOf(r) != "2 red" {
			t.Errorf("control: the answer came to %+v", r)
		}
	})
}

// TestQuestionsEndWithTheirClient disconnects while the tool asks: the call is canceled.
func TestQuestionsEndWithTheirClient(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	canceled := 0
	for transport, connect := range transports {
		for _, revision := range revisions[1:] {
			t.Run(transport+" "+revision, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				over := make(chan struct{})
				defer close(over)
				s := connect(t, h, revision, &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					cancel()
					<-over
					return said(3), nil
				}})
				if r, err := s.CallTool(ctx, askTool("probe_ask", "How many?")); err == nil {
					t.Errorf("the canceled call came to %+v", r)
				}
				canceled++
				eventually(t, "the call is canceled", func() bool {
					list := h.must(t, 200, "GET", "/v1/calls", h.token, "")
					return strings.Count(list, `"state":"done"`) == canceled && strings.Count(list, `"state"`) == canceled
				})
				eventually(t, "the journal says so", func() bool { // rows of reads may lag
					rows := ofTool(h.journal(t, "--limit", "1000"), "probe_ask")
					return len(rows) == canceled && rows[canceled-1].Code == "canceled"
				})
			})
		}
	}
}

// TestQuestionsElsewhere calls a tool that asks over REST and on the command line, which
// cannot show questions.
func TestQuestionsElsewhere(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	if got := h.post(t, "probe_ask", map[string]any{"question": "How many?"}); got.Error == nil || got.Error.Code != "UNAVAILABLE" {
		t.Errorf("over REST the call came to %+v, want unavailable", got)
	}
	if _, stderr, code := h.cli("call", "probe_ask", "question=How many?"); code != 1 || !strings.Contains(stderr, "the user cannot be asked") {
		t.Errorf("on the command line the call exits with %d and says %q", code, stderr)
	}
}
