package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// afterwards is how long a round may be repeated after the time for a decision.
const afterwards = 10 * time.Minute

// round is one request of a call by a client of a revision without sessions. If the call needs
// input, the answer says which, and the client repeats the call with that input.
type round struct {
	caller auth.Caller
	// before is the state in the previous answer of this call; zero for the first request.
	before requestState
	// dismissed reports that the user closed the question about the approval.
	dismissed bool
	// leave records that the client answers no more questions of the tool.
	leave func()
}

// resume finds and holds the call that a request continues, and applies the request's answer.
// The operation is nil if the call has ended and its result is gone. A repeated round finds
// what it found the first time: an approval is decided once, and a question is answered once.
// The operation is attended.
func (s *Server) resume(ctx context.Context, req *mcp.CallToolRequest, r *round) (*operation.Operation, error) {
	state, err := s.seal.open(req.Params.RequestState)
	if err == nil {
		err = state.check(ownerOf(r.caller), req.Params.Name, hashOf(req.Params.Arguments))
	}
	if err != nil {
		return nil, &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidParams,
			Message: err.Error() + "; make the call anew, without requestState",
		}
	}
	op, ok := s.opts.Pipeline.Operations().Find(state.Operation, r.caller)
	if !ok {
		return nil, nil
	}
	r.before = state
	op.Attend()
	// An answer counts only for the question of its round.
	if answer, ok := req.Params.InputResponses[inputApproval].(*mcp.ElicitResult); ok && state.Approval.ID != "" && mayElicit(req, r.caller) {
		r.dismissed = !s.decide(ctx, r.caller, state.Approval, answer)
		if !r.dismissed {
			op.Resumed(ctx, state.Approval.ID)
		}
	}
	if answer, ok := req.Params.InputResponses[inputQuestion].(*mcp.ElicitResult); ok && state.Question != "" && showsForms(req) {
		op.Answer(state.Question, answerOf(answer))
	}
	return op, nil
}

// waitRound waits for the outcome of a call for the client's patience. If the call waits for a
// person whom the client can ask, it returns the question instead.
func (s *Server) waitRound(ctx context.Context, req *mcp.CallToolRequest, r round, op *operation.Operation) (operation.Outcome, *mcp.CallToolResult) {
	state := requestState{Round: r.before.Round + 1}
	mayApprove := state.Round <= maxRounds && mayElicit(req, r.caller)
	for {
		patience := s.opts.Patience
		if mayApprove {
			patience = 0
		}
		waiting, cancel := s.patient(ctx, op)
		outcome := op.WaitAttending(waiting, patience)
		over := waiting.Err() != nil
		cancel()
		state.Operation = outcome.ID
		switch q := outcome.Question; {
		case !outcome.Pending || ctx.Err() != nil:
			return outcome, nil
		case q != nil && (!showsForms(req) || state.Round > maxInputs): // the client would give up
			r.leave()
			waiting, cancel := s.patient(ctx, op)
			defer cancel()
			return op.Wait(waiting, s.opts.Patience), nil
		case q != nil:
			state.Question, state.Expires = q.ID, q.Expires.Add(afterwards)
			return outcome, s.needInput(req, r, op, inputQuestion, questionForm(*q), state)
		case !mayApprove || over:
			return outcome, nil
		}
		mayApprove = false // others decide, unless the user may approve now
		if r.dismissed && outcome.Approval == r.before.Approval.ID {
			continue
		}
		if q := s.question(ctx, outcome.Approval); q != nil {
			state.Approval, state.Expires = q.shown, q.expires.Add(afterwards)
			return outcome, s.needInput(req, r, op, inputApproval, q.form, state)
		}
	}
}

// needInput tells the client to repeat the call with an answer.
func (s *Server) needInput(req *mcp.CallToolRequest, r round, op *operation.Operation, name string, form *mcp.ElicitParams, state requestState) *mcp.CallToolResult {
	op.Keep()
	op.Expect()
	state.Owner, state.Tool, state.Hash = ownerOf(r.caller), req.Params.Name, hashOf(req.Params.Arguments)
	return &mcp.CallToolResult{Content: []mcp.Content{}, InputRequests: mcp.InputRequestMap{name: form}, RequestState: s.seal.close(state)}
}

// hashOf returns a hash of the arguments that does not depend on how their JSON is written.
func hashOf(arguments json.RawMessage) string {
	text := []byte(arguments)
	var value any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&value) == nil {
		if same, err := json.Marshal(value); err == nil {
			text = same
		}
	}
	return digest.Of(text)
}

// gone is the outcome when a client continues its call too late.
func gone(name string) operation.Outcome {
	return operation.Outcome{Tool: name, Result: tool.ErrorResult(
		tool.Errorf(tool.Conflict, "the call that this answers has ended").
			WithHint("look whether it has had its effect, then make the call anew if it is still needed"))}
}
