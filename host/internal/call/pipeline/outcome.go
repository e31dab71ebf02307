package pipeline

import (
	"encoding/json"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// outcomeJSON is the form of an [Outcome] that programs read.
type outcomeJSON struct {
	Status          string      `json:"status"` // "success", "error", "rejected" or "pending"
	ToolCallID      string      `json:"tool_call_id"`
	ApprovalID      string      `json:"approval_id,omitempty"`
	Result          *resultJSON `json:"result,omitempty"`
	Error           *errorJSON  `json:"error,omitempty"`
	Reason          string      `json:"reason,omitempty"`       // of a rejection
	UserMessage     string      `json:"user_message,omitempty"` // with a rejection
	ExecutionTimeMS int64       `json:"execution_time_ms"`
}

type resultJSON struct {
	Content    string          `json:"content"` // the text parts
	Parts      []partJSON      `json:"parts,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Metadata   map[string]any  `json:"metadata,omitempty"`
	Effects    []tool.Effect   `json:"effects,omitempty"`
}

// partJSON is a part of the content that is no text.
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
	out := outcomeJSON{Status: o.status(), ToolCallID: o.ID, ApprovalID: o.Approval, ExecutionTimeMS: o.Duration.Milliseconds()}
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

// status is the word for how a call ended, in JSON, in the journal and in
// events.
func (o Outcome) status() string {
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
