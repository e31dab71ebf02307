package client

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Call is a call to make.
type Call struct {
	// Tool is a tool's name or alias.
	Tool string
	// Arguments is JSON; nil means none.
	Arguments json.RawMessage
	// Context is what to tell whoever is asked to approve the call.
	Context string
	// IdempotencyKey makes a call that is sent again have its effect once.
	IdempotencyKey string
	// Wait is how long to wait for the outcome before it is Pending; 0 is as
	// long as it takes, but for a person only the host's patience. Less than 0
	// does not wait at all.
	Wait time.Duration
	// Asks makes the outcome Pending as soon as the call waits for a person.
	Asks bool
}

// What [Outcome.Status] can be.
const (
	Success  = "success"
	Error    = "error"
	Rejected = "rejected"
	Pending  = "pending"
	// Unknown: the host was killed while the call ran.
	Unknown = "unknown"
)

// Outcome is how a call ended, or that it goes on.
type Outcome struct {
	Status          string     `json:"status"`
	ToolCallID      string     `json:"tool_call_id"`
	ApprovalID      string     `json:"approval_id"`
	Result          *Result    `json:"result"`
	Error           *CallError `json:"error"`
	Reason          string     `json:"reason"`
	UserMessage     string     `json:"user_message"`
	ExecutionTimeMS int64      `json:"execution_time_ms"`
	// Record is what the journal has of a call whose result is gone.
	Record *journal.Record `json:"record"`
	Raw    json.RawMessage `json:"-"`
}

// Result is what a tool has answered.
type Result struct {
	// Content is the text.
	Content    string          `json:"content"`
	Parts      []tool.Content  `json:"parts"`
	Structured json.RawMessage `json:"structured"`
	Metadata   map[string]any  `json:"metadata"`
	Effects    []tool.Effect   `json:"effects"`
}

// CallError is why a call failed.
type CallError struct {
	// Code is in upper case.
	Code         string `json:"code"`
	Message      string `json:"message"`
	Hint         string `json:"hint"`
	Recoverable  bool   `json:"recoverable"`
	RetryAfterMS int64  `json:"retry_after_ms"`
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Outcome) UnmarshalJSON(text []byte) error {
	type plain Outcome
	if err := json.Unmarshal(text, (*plain)(o)); err != nil {
		return err
	}
	o.Raw = append(json.RawMessage(nil), text...)
	return nil
}

// MarshalJSON implements [json.Marshaler]: as the host sent it.
func (o Outcome) MarshalJSON() ([]byte, error) { return o.Raw, nil }

// Call makes a call and returns how it ended, or that it is [Pending]. When ctx
// ends, the host cancels the call if this was still waiting for it.
func (c *Client) Call(ctx context.Context, call Call) (Outcome, error) {
	header := http.Header{}
	switch {
	case call.Wait < 0:
		header.Set("Prefer", "respond-async")
	case call.Asks:
		header.Set("Prefer", "approval-wait=0")
	case call.Wait > 0:
		header.Set("Prefer", "wait="+strconv.Itoa(int(math.Ceil(call.Wait.Seconds()))))
	}
	if call.IdempotencyKey != "" {
		header.Set("Idempotency-Key", call.IdempotencyKey)
	}
	var outcome Outcome
	err := c.do(ctx, request{method: "POST", path: "/v1/calls", header: header, body: call.body()}, &outcome)
	return outcome, err
}

func (call Call) body() any {
	return struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Context   string          `json:"context,omitempty"`
	}{call.Tool, call.Arguments, call.Context}
}

// Calls lists the calls under way.
func (c *Client) Calls(ctx context.Context) ([]operation.Info, error) {
	var calls []operation.Info
	err := c.do(ctx, request{method: "GET", path: "/v1/calls"}, &calls)
	return calls, err
}

// Outcome returns how a call ended, or that it is [Pending] after wait. Of a
// call whose result was collected it tells what the journal has.
func (c *Client) Outcome(ctx context.Context, id string, wait time.Duration) (Outcome, error) {
	query := url.Values{}
	if wait > 0 {
		query.Set("wait", wait.String())
	}
	var outcome Outcome
	err := c.do(ctx, request{method: "GET", path: "/v1/calls/" + url.PathEscape(id), query: query}, &outcome)
	return outcome, err
}

// Cancel cancels a call under way and returns how it ended.
func (c *Client) Cancel(ctx context.Context, id string) (Outcome, error) {
	var outcome Outcome
	err := c.do(ctx, request{method: "POST", path: "/v1/calls/" + url.PathEscape(id) + "/cancel"}, &outcome)
	return outcome, err
}

// Explain returns what would happen to a call.
func (c *Client) Explain(ctx context.Context, call Call) (pipeline.Explanation, error) {
	var explanation pipeline.Explanation
	err := c.do(ctx, request{method: "POST", path: "/v1/explain", body: struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
	}{call.Tool, call.Arguments}}, &explanation)
	return explanation, err
}

// Tools lists the tools.
func (c *Client) Tools(ctx context.Context) ([]httpapi.Tool, error) {
	var tools []httpapi.Tool
	err := c.do(ctx, request{method: "GET", path: "/v1/tools"}, &tools)
	return tools, err
}

// ToolsAs lists the tools in the form of an API: openai, anthropic, gemini or
// mcp.
func (c *Client) ToolsAs(ctx context.Context, format string) (json.RawMessage, error) {
	var tools json.RawMessage
	err := c.do(ctx, request{method: "GET", path: "/v1/tools", query: url.Values{"format": {format}}}, &tools)
	return tools, err
}

// Tool returns the tool with a name or an alias.
func (c *Client) Tool(ctx context.Context, name string) (httpapi.Tool, error) {
	var t httpapi.Tool
	err := c.do(ctx, request{method: "GET", path: "/v1/tools/" + url.PathEscape(name)}, &t)
	return t, err
}

// Failure is why the call failed, or nil if it has succeeded or goes on.
func (o Outcome) Failure() *tool.Error {
	switch {
	case o.Error != nil && o.Status != Pending:
		failure := tool.Errorf(tool.Code(strings.ToLower(o.Error.Code)), "%s", o.Error.Message)
		if o.Error.Hint != "" {
			failure = failure.WithHint("%s", o.Error.Hint)
		}
		return failure
	case o.Status == Rejected:
		failure := tool.Errorf(tool.Rejected, "%s", o.Reason)
		if o.UserMessage != "" {
			failure = failure.WithHint("%s", o.UserMessage)
		}
		return failure
	case o.Record != nil && o.Record.Code != "":
		return tool.Errorf(tool.Code(o.Record.Code), "%s", o.Record.Error)
	case o.Record != nil:
		return tool.Errorf(tool.UnknownOutcome, "the call %s has ended, and its result is gone", o.ToolCallID).
			WithHint("toolhost journal query --call %s says what is known of it", o.ToolCallID)
	}
	return nil
}
