package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// inputQuestion names the input that answers a tool's question. It differs from that of an
	// approval, so that neither answer can pass for the other.
	inputQuestion = "question"
	// maxInputs bounds how often one call asks a client of a revision without sessions for
	// input. Clients give up at the tenth time.
	maxInputs = 9
	// maxLines bounds the lines of a question, so that the host's words around it stay on the
	// screen.
	maxLines = 60
)

// showsForms reports whether a request's client can show its user a form. Any such client is
// asked the questions of tools, trusted or not: like the call's arguments, the answer goes
// only to the tool and decides nothing about what may run.
func showsForms(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// questionForm returns a form with a tool's question, which marks every line as the tool's
// words.
func questionForm(q operation.Question) *mcp.ElicitParams {
	var b strings.Builder
	fmt.Fprintf(&b, "The tool %s of plugin %s asks:\n\n", q.Tool, q.Plugin)
	b.WriteString(quoted(q.Text))
	if q.Mistake != "" {
		b.WriteString("\nThe last answer did not fit:\n\n" + quoted(q.Mistake))
	}
	b.WriteString("\nYour answer goes to this tool. It approves nothing. Do not give passwords or keys.")
	return &mcp.ElicitParams{Mode: "form", Message: b.String(), RequestedSchema: q.Schema}
}

// quoted returns untrusted text with every character visible and every line marked.
func quoted(text string) string {
	lines := strings.Split(tool.Visible(strings.TrimSpace(text)), "\n")
	var view approval.View
	for i, line := range lines {
		if i == maxLines {
			view.Lines = append(view.Lines, approval.Line{
				Kind: approval.Omission, Text: fmt.Sprintf("%d more lines are not shown", len(lines)-i),
			})
			break
		}
		view.Lines = append(view.Lines, approval.Line{Kind: approval.Shown, Text: line})
	}
	return view.Text(0)
}

// answerOf returns the user's answer to a tool's question.
func answerOf(result *mcp.ElicitResult) tool.Answer {
	if result.Action != "accept" {
		return tool.Answer{} // the user declined or closed the form
	}
	values, err := json.Marshal(result.Content)
	if err != nil || result.Content == nil {
		values = []byte("{}")
	}
	return tool.Answer{Given: true, Values: values}
}

// elicitAnswer shows a tool's question until the user answers it or it ends, and reports
// whether the client can be asked another one.
func (s *Server) elicitAnswer(ctx context.Context, req *mcp.CallToolRequest, op *operation.Operation, q operation.Question) bool {
	result, err := s.show(ctx, req, op, q.ID, questionForm(q))
	switch {
	case err != nil && unfit(err):
		op.AskAgain(q.ID, "the client did not send what the form asks for")
	case err != nil:
		s.opts.Logger.Debug("a client did not ask its user", "question", q.ID, "error", err)
		return false
	case result != nil:
		op.Answer(q.ID, answerOf(result))
	}
	return true
}

// unfit reports whether the client or the SDK refused an answer because it does not match the
// form.
func unfit(err error) bool {
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && refused.Code == jsonrpc.CodeInvalidParams {
		return true
	}
	return strings.Contains(err.Error(), "does not match requested schema")
}
