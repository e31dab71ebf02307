package operation

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Outcome is how a call ended.
type Outcome struct {
	// ID is the call's own id, "tc_" and a UUIDv7.
	ID string
	// Tool is the tool's name, or the name that the caller gave if there is no
	// such tool.
	Tool string
	// Result is what the caller gets; its Error is why a call failed.
	Result tool.Result
	// Repairs are the changes that made the arguments fit the schema.
	Repairs []schema.Repair
	// Duration is the time from request to result.
	Duration time.Duration
	// Approval is the id of the approval that a person was asked for, or "".
	Approval string
	// Pending reports that the call continues and has no result yet. State says what it is
	// doing. Result says so too, as an error only while the call waits for a person.
	Pending bool
	State   State
	// Question is the tool's question to the user, for a holder that attends; nil
	// if it asks nothing.
	Question *Question
}

// outcomeJSON is an [Outcome] as programs read it.
type outcomeJSON struct {
	Status          string      `json:"status"` // "success", "error", "rejected" or "pending"
	ToolCallID      string      `json:"tool_call_id"`
	ApprovalID      string      `json:"approval_id,omitempty"`
	State           State       `json:"state,omitempty"` // with "pending"
	Result          *resultJSON `json:"result,omitempty"`
	Error           *errorJSON  `json:"error,omitempty"`
	Reason          string      `json:"reason,omitempty"`       // of a rejection
	UserMessage     string      `json:"user_message,omitempty"` // with a rejection
	ExecutionTimeMS int64       `json:"execution_time_ms"`
}

// JSONType returns the type with the fields of an [Outcome] in JSON.
func JSONType() reflect.Type { return reflect.TypeFor[outcomeJSON]() }

type resultJSON struct {
	Content    string          `json:"content"` // the text parts
	Parts      []partJSON      `json:"parts,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Metadata   map[string]any  `json:"metadata,omitempty"`
	Effects    []tool.Effect   `json:"effects,omitempty"`
}

// partJSON is a part of the content that is not text.
type partJSON struct {
	Kind      string `json:"kind"`
	MediaType string `json:"media_type,omitempty"`
	URI       string `json:"uri,omitempty"`
	Name      string `json:"name,omitempty"`
	Data      []byte `json:"data,omitempty"` // base64
}

type errorJSON struct {
	Code         string `json:"code"` // in upper case
	Message      string `json:"message"`
	Hint         string `json:"hint,omitempty"`
	Recoverable  bool   `json:"recoverable"` // the same call may succeed later
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

// MarshalJSON implements [json.Marshaler]: the result format of the REST
// interface and of `toolhost call --json`.
func (o Outcome) MarshalJSON() ([]byte, error) {
	out := outcomeJSON{Status: o.Status(), ToolCallID: o.ID, ApprovalID: o.Approval, State: o.State, ExecutionTimeMS: o.Duration.Milliseconds()}
	r, e := o.Result, o.Result.Error
	if e == nil || len(r.Content) > 0 || r.Structured != nil || r.Metadata != nil || len(r.Effects) > 0 {
		out.Result = &resultJSON{
			Content: r.Text(), Parts: parts(r.Content), Structured: r.Structured, Metadata: r.Metadata, Effects: r.Effects,
		}
	}
	switch {
	case e == nil:
	case e.Code == tool.Rejected:
		out.Reason, out.UserMessage = e.Message, e.Hint
	default:
		out.Error = &errorJSON{
			Code: strings.ToUpper(string(e.Code)), Message: e.Message, Hint: e.Hint,
			Recoverable: e.Retryable, RetryAfterMS: e.RetryAfter.Milliseconds(),
		}
	}
	return json.Marshal(out)
}

// Status returns "success", "error", "rejected" or "pending", as JSON, the
// journal and events write it.
func (o Outcome) Status() string {
	switch failure := o.Result.Error; {
	case o.Pending:
		return "pending"
	case failure == nil:
		return "success"
	case failure.Code == tool.Rejected:
		return "rejected"
	}
	return "error"
}

func parts(content []tool.Content) []partJSON {
	var list []partJSON
	for _, c := range content {
		if c.Kind != tool.KindText {
			list = append(list, partJSON{Kind: c.Kind.String(), MediaType: c.MediaType, URI: c.URI, Name: c.Name, Data: c.Data})
		}
	}
	return list
}

// Size returns the bytes of a result's content and structured part.
func Size(result tool.Result) int64 {
	n := len(result.Structured)
	for _, part := range result.Content {
		n += len(part.Data)
	}
	return int64(n)
}
