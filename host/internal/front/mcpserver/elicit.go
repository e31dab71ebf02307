package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxForm bounds the bytes of a question in a client's form. Larger questions are decided
	// elsewhere, where they are shown whole.
	maxForm = 64 << 10
	// maxRounds bounds how often one call asks for an approval through its client.
	maxRounds = 5
	// maxNote bounds the characters of a rejection's message, as the approval's record does.
	maxNote = 2000
	// via names this channel in the record of a decision.
	via = "elicitation"
	// inputApproval names the input that decides on an approval.
	inputApproval = "approval"
)

// The form's fields and the answers that it offers.
const (
	fieldDecision = "decision"
	fieldNote     = "note"

	answerApprove = "approve"
	answerSession = "session"
	answerAlways  = "always"
	answerReject  = "reject"
)

// mayElicit reports whether the host may ask the client's user for an approval through the
// client. The client's own declaration counts only for what it can show; its token must also
// say that the admin trusts it with the answer.
func mayElicit(req *mcp.CallToolRequest, caller auth.Caller) bool {
	// Check the credential first: the SDK decodes the capabilities for each request.
	return caller.Elicitation && showsForms(req)
}

// form returns the question about a record, or nil if the form cannot show all of it.
func form(r approval.Record) *mcp.ElicitParams {
	view := approval.Show(r)
	text := view.Text(0)
	if !view.Complete || len(text) > maxForm {
		return nil
	}
	answers := []string{answerApprove}
	if r.Standing && auth.SessionEnds(r.Session) {
		answers = append(answers, answerSession)
	}
	if r.Standing {
		answers = append(answers, answerAlways)
	}
	answers = append(answers, answerReject)
	return &mcp.ElicitParams{
		Mode:    "form",
		Message: "Let the agent call " + r.Tool + "?\n\n" + text,
		RequestedSchema: map[string]any{
			"type":     "object",
			"required": []string{fieldDecision},
			"properties": map[string]any{
				fieldDecision: map[string]any{
					"type": "string", "title": "Decision", "enum": answers,
					"description": "approve: this call only" + standingMeans(r) + "; reject: the call does not run",
				},
				fieldNote: map[string]any{
					"type": "string", "title": "Note", "description": "what the agent is told, if you reject", "maxLength": maxNote,
				},
			},
		},
	}
}

// standingMeans explains the answers that also cover later calls.
func standingMeans(r approval.Record) string {
	if !r.Standing {
		return ""
	}
	later := fmt.Sprintf("every later call of %s", r.Tool)
	if len(r.Subject.Commands) > 0 {
		later = fmt.Sprintf("every later call of %s that runs just these commands", r.Tool)
	}
	means := fmt.Sprintf("; always: also %s, until you revoke that", later)
	if auth.SessionEnds(r.Session) {
		means = fmt.Sprintf("; session: also %s in this session", later) + means
	}
	return means
}

// shown identifies what the client's user was shown, and of which record.
type shown struct {
	ID            string `json:"id,omitempty"`
	ArgumentsHash string `json:"arguments_hash,omitempty"`
	PreviewDigest string `json:"preview_digest,omitempty"`
}

// decide applies the user's answer to the question about a record. It reports whether there
// was an answer: a closed form leaves the decision to others. If another approver decided
// first, that decision counts.
func (s *Server) decide(ctx context.Context, caller auth.Caller, asked shown, answer *mcp.ElicitResult) bool {
	decision := approval.Decision{
		ID: asked.ID, ArgumentsHash: asked.ArgumentsHash, PreviewDigest: asked.PreviewDigest, Via: via,
		// The admin trusts the client to speak for its user.
		By: auth.Caller{User: caller.User, Client: caller.Client, Session: caller.Session, Roles: auth.Approver},
	}
	switch note, _ := answer.Content[fieldNote].(string); answer.Action {
	case "accept":
		switch answer.Content[fieldDecision] {
		case answerApprove:
			decision.Approve = true
		case answerSession:
			decision.Approve, decision.Grant = true, &approval.Terms{Session: true}
		case answerAlways:
			decision.Approve, decision.Grant = true, &approval.Terms{}
		case answerReject:
			decision.Message = excerpt.Characters(strings.TrimSpace(note), maxNote)
		default:
			return false
		}
	case "decline":
	default:
		return false
	}
	decided, err := s.opts.Approvals.Decide(ctx, decision)
	if err != nil {
		s.opts.Logger.Warn("an answer over elicitation did not count", "approval", asked.ID, "error", err)
	}
	if err == nil && decided.State == approval.Open {
		return false // another person has to approve it, too
	}
	// A conflict means that another approver decided first.
	return err == nil || tool.AsError(err).Code == tool.Conflict
}

// waitAsking waits for the outcome of a call for the client's patience, and has a client of a
// revision with sessions ask its user meanwhile.
func (s *Server) waitAsking(ctx context.Context, req *mcp.CallToolRequest, r round, op *operation.Operation) operation.Outcome {
	left := 0 // remaining questions about approvals
	if mayElicit(req, r.caller) {
		left = maxRounds
	}
	for {
		patience := s.opts.Patience
		if left > 0 {
			patience = 0
		}
		waiting, cancel := s.patient(ctx, op)
		outcome := op.WaitAttending(waiting, patience)
		over := waiting.Err() != nil
		cancel()
		switch {
		case !outcome.Pending || ctx.Err() != nil:
			return outcome
		case outcome.Question != nil:
			if !showsForms(req) || !s.elicitAnswer(ctx, req, op, *outcome.Question) {
				r.leave()
				waiting, cancel := s.patient(ctx, op)
				defer cancel()
				return op.Wait(waiting, s.opts.Patience)
			}
		case left == 0 || over:
			return outcome
		default:
			left--
			if q := s.question(ctx, outcome.Approval); q == nil || !s.elicitDecision(ctx, req, r.caller, op, *q) {
				left = 0
			}
		}
	}
}

// elicitDecision shows the question about a record until the user answers it or another
// approver decides, and then waits until the call continues. It reports whether the call
// continues.
func (s *Server) elicitDecision(ctx context.Context, req *mcp.CallToolRequest, caller auth.Caller, op *operation.Operation, q question) bool {
	answer, err := s.show(ctx, req, op, q.shown.ID, q.form)
	switch {
	case err != nil:
		s.opts.Logger.Debug("a client did not ask its user", "approval", q.shown.ID, "error", err)
		return false
	case answer == nil:
		return ctx.Err() == nil
	case !s.decide(ctx, caller, q.shown, answer):
		return false
	}
	op.Resumed(ctx, q.shown.ID)
	return true
}

// show has a client show a form until the user answers it. It withdraws the form and returns
// nil if the operation no longer waits for the answer or ctx ends.
func (s *Server) show(ctx context.Context, req *mcp.CallToolRequest, op *operation.Operation, id string, form *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	asking, stop := context.WithCancel(ctx)
	answered, resumed := make(chan struct{}), make(chan struct{})
	var answer *mcp.ElicitResult
	var err error
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer stop()
	waiting.Go(func() { // ends with asking
		answer, err = req.Session.Elicit(asking, form)
		close(answered)
	})
	waiting.Go(func() { // ends with asking
		op.Resumed(asking, id)
		close(resumed)
	})
	select {
	case <-answered:
		if ctx.Err() != nil {
			return nil, nil
		}
		return answer, err
	case <-resumed:
		return nil, nil
	}
}

// question is an open question about an approval, until it expires.
type question struct {
	shown   shown
	form    *mcp.ElicitParams
	expires time.Time
}

// question returns the question about an approval, or nil if no form could show it whole.
func (s *Server) question(ctx context.Context, id string) *question {
	record, err := s.opts.Approvals.Get(ctx, id)
	if err != nil || record.State != approval.Open {
		return nil
	}
	form := form(record)
	if form == nil {
		return nil
	}
	return &question{shown{record.ID, record.ArgumentsHash, record.PreviewDigest}, form, record.Expires}
}
