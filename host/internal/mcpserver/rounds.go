package mcpserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/pipeline"
	"github.com/toolhost/toolhost/sdk/tool"
)

// afterwards is how long after the time for a decision a round may be repeated.
const afterwards = 10 * time.Minute

// round is one request of a call by a client of a revision without sessions,
// which is told what input is needed and makes the call again with it.
type round struct {
	caller auth.Caller
	// before is what the call's request before this one was answered with; zero
	// for the first one.
	before requestState
	// dismissed says that the user was asked and has not answered.
	dismissed bool
}

// resume finds the call that a request goes on with, held, and takes the answer
// that it brings. The flight is nil if the call is not under way any more. A
// round that is repeated finds what it found the first time: an approval is
// decided once.
func (s *Server) resume(ctx context.Context, req *mcp.CallToolRequest, r *round) (*pipeline.Flight, error) {
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
	flight, ok := s.opts.Pipeline.Flight(state.Flight, r.caller)
	if !ok {
		return nil, nil
	}
	r.before = state
	if answer, ok := req.Params.InputResponses[inputApproval].(*mcp.ElicitResult); ok && s.mayElicit(req, r.caller) {
		r.dismissed = !s.decide(ctx, r.caller, state.Approval, answer)
		if !r.dismissed {
			flight.Resumed(ctx, state.Approval)
		}
	}
	return flight, nil
}

// waitRound waits for the outcome of a call as [pipeline.Flight.Wait] does. If
// the call waits for a person whom the client can ask, it returns the question
// instead.
func (s *Server) waitRound(ctx context.Context, req *mcp.CallToolRequest, r round, flight *pipeline.Flight) (pipeline.Outcome, *mcp.CallToolResult) {
	outcome := flight.Wait(ctx, 0)
	if !outcome.Pending || ctx.Err() != nil {
		return outcome, nil
	}
	asked := r.dismissed && outcome.Approval == r.before.Approval
	if !asked && r.before.Round < maxRounds {
		if question, expires := s.question(ctx, outcome.Approval); question != nil {
			flight.Keep()
			return outcome, &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{inputApproval: question},
				RequestState: s.seal.close(requestState{
					Flight: outcome.ID, Approval: outcome.Approval, Owner: ownerOf(r.caller),
					Tool: req.Params.Name, Hash: hashOf(req.Params.Arguments), Round: r.before.Round + 1, Expires: expires.Add(afterwards),
				}),
			}
		}
	}
	return flight.Wait(ctx, s.opts.Patience), nil
}

// hashOf tells arguments apart, however their JSON is spelled.
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
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// gone is the outcome of a call that its client comes back to too late.
func gone(name string) pipeline.Outcome {
	return pipeline.Outcome{Tool: name, Result: tool.ErrorResult(
		tool.Errorf(tool.Conflict, "the call that this answers is not under way any more").
			WithHint("look whether it has had its effect, then make the call anew if it is still needed"))}
}
