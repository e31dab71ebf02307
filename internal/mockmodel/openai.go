package mockmodel

import (
	"encoding/json"
	"io"
	"net/http"
)

// responsesRequest holds the fields of a responses API request that the mock reads.
type responsesRequest struct {
	Input []struct {
		Type   string          `json:"type"`
		CallID string          `json:"call_id"`
		Output json.RawMessage `json:"output"`
	} `json:"input"`
}

// result returns the output of a call if the request contains it.
func (q *responsesRequest) result(id string) (json.RawMessage, bool) {
	for _, item := range q.Input {
		if item.Type == "function_call_output" && item.CallID == id {
			return item.Output, true
		}
	}
	return nil, false
}

// responses serves the responses API: it answers with one tool call or the word "done".
func (m *Model) responses(w http.ResponseWriter, r *http.Request) {
	var q responsesRequest
	body, ok := read(w, r, &q)
	if !ok {
		return
	}
	next, more := m.next(r, body, q.result)
	if r.Context().Err() != nil {
		return
	}
	item := map[string]any{
		"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": "done", "annotations": []any{}}},
	}
	if more {
		item = map[string]any{
			"type": "function_call", "id": "fc_" + next.id, "call_id": next.id, "status": "completed",
			"name": next.name, "arguments": string(next.args),
		}
		if next.namespace != "" {
			item["namespace"] = next.namespace
		}
	}
	response := func(status string, output ...any) map[string]any {
		return map[string]any{"response": map[string]any{
			"id": "resp_1", "object": "response", "status": status, "output": append([]any{}, output...),
			"usage": map[string]any{
				"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
				"input_tokens_details": map[string]int{"cached_tokens": 0}, "output_tokens_details": map[string]int{"reasoning_tokens": 0},
			},
		}}
	}
	s := newStream(w)
	s.send("response.created", response("in_progress"))
	s.send("response.output_item.added", map[string]any{"output_index": 0, "item": item})
	s.send("response.output_item.done", map[string]any{"output_index": 0, "item": item})
	s.send("response.completed", response("completed", item))
}

// models answers that there is no list of models, so that clients use their own.
func models(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"object":"list","data":[],"models":[]}`)
}
