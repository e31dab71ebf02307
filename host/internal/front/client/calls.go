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
	// Context is why the call is made, in the words of the caller.
	Context string
	// IdempotencyKey makes a repeated call have its effect once.
	IdempotencyKey string
	// Wait is how long to wait for the outcome before it is Pending. 0 waits for as long
	// as the call takes, but for a person only for the host's patience. A negative Wait
	// does not wait.
	Wait time.Duration
	// Asks makes the outcome Pending as soon as the call waits for a person.
	Asks bool
}

// The values of [Outcome.Status].
const (
	Success  = "success"
	Error    = "error"
	Rejected = "rejected"
	Pending  = "pending"
	// Unknown: the host was killed while the call ran.
	Unknown = "unknown"
)

// Outcome is the result of a call, or says that the call continues.
type Outcome struct {
	Status          string     `json:"status"`
	ToolCallID      string     `json:"tool_call_id"`
	ApprovalID      string     `json:"approval_id"`
	Result          *Result    `json:"result"`
	Error           *CallError `json:"error"`
	Reason          string     `json:"reason"`
	UserMessage     string     `json:"user_message"`
	ExecutionTimeMS int64      `json:"execution_time_ms"`
	// Record is the journal's record of a call whose result is gone.
	Record *journal.Record `json:"record"`
	Raw    json.RawMessage `json:"-"`
}

// Result is the answer of a tool.
type Result struct {
	// Content is the text.
	Content    string          `json:"content"`
	Parts      []tool.Content  `json:"parts"`
	Structured json.RawMessage `json:"structured"`
	Metadata   map[string]any  `json:"metadata"`
	Effects    []tool.Effect   `json:"effects"`
}

// CallError is the error of a call.
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

// MarshalJSON implements [json.Marshaler]. It returns the JSON that the host sent.
func (o Outcome) MarshalJSON() ([]byte, error) { return o.Raw, nil }

// Call makes a call and returns its outcome, which may be [Pending]. If ctx ends while
// Call waits, the host cancels the call.
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
	return ask[Outcome](ctx, c, request{method: http.MethodPost, path: "/v1/calls", header: header, body: struct {
		explained
		Context string `json:"context,omitempty"`
	}{call.explained(), call.Context}})
}

// explained is the part of a call that the policy decides about.
type explained struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

func (call Call) explained() explained { return explained{call.Tool, call.Arguments} }

// Outcome returns the outcome of a call, or [Pending] after wait. For a call whose result
// was collected, it returns the journal's record.
func (c *Client) Outcome(ctx context.Context, id string, wait time.Duration) (Outcome, error) {
	query := url.Values{}
	if wait > 0 {
		query.Set("wait", wait.String())
	}
	return get[Outcome](ctx, c, "/v1/calls/"+url.PathEscape(id), query)
}

// Calls lists the calls in progress, oldest first; an admin reads those of all users.
func (c *Client) Calls(ctx context.Context) ([]operation.Info, error) {
	return get[[]operation.Info](ctx, c, "/v1/calls", nil)
}

// Cancel cancels a running call and returns its outcome.
func (c *Client) Cancel(ctx context.Context, id string) (Outcome, error) {
	return post[Outcome](ctx, c, "/v1/calls/"+url.PathEscape(id)+"/cancel", nil)
}

// Explain returns the verdict that the policy would give a call, and why.
func (c *Client) Explain(ctx context.Context, call Call) (pipeline.Explanation, error) {
	return c.ExplainAs(ctx, call, "", "")
}

// ExplainAs is like Explain, for a call of a user by a client; "" leaves the caller's own.
func (c *Client) ExplainAs(ctx context.Context, call Call, user, client string) (pipeline.Explanation, error) {
	return post[pipeline.Explanation](ctx, c, "/v1/explain", struct {
		explained
		User   string `json:"user,omitempty"`
		Client string `json:"client,omitempty"`
	}{call.explained(), user, client})
}

// Tools lists the tools.
func (c *Client) Tools(ctx context.Context) ([]httpapi.Tool, error) {
	return get[[]httpapi.Tool](ctx, c, "/v1/tools", nil)
}

// Tool returns the tool with a name or an alias.
func (c *Client) Tool(ctx context.Context, name string) (httpapi.ToolDetails, error) {
	return get[httpapi.ToolDetails](ctx, c, "/v1/tools/"+url.PathEscape(name), nil)
}

// Failure returns the error of the call, or nil if the call succeeded or continues.
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
		return tool.Errorf(tool.UnknownOutcome, "the call %s has ended, and its result is gone", o.ToolCallID)
	}
	return nil
}
