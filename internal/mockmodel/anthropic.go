package mockmodel

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// messagesRequest holds the fields of a messages API request that the mock reads.
type messagesRequest struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Tools  []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Messages []struct {
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// offersTools reports whether the request belongs to the conversation. Clients also ask a
// model for other things, such as a title, without offering tools.
func (q *messagesRequest) offersTools() bool { return len(q.Tools) > 1 }

// result returns the result of a call if the last message contains it.
func (q *messagesRequest) result(id string) (json.RawMessage, bool) {
	for _, message := range slices.Backward(q.Messages) {
		var blocks []struct {
			Type      string          `json:"type"`
			ToolUseID string          `json:"tool_use_id"`
			Content   json.RawMessage `json:"content"`
		}
		if json.Unmarshal(message.Content, &blocks) != nil {
			continue
		}
		for _, block := range blocks {
			if block.Type == "tool_result" && block.ToolUseID == "toolu_"+id {
				return block.Content, true
			}
		}
	}
	return nil, false
}

// messages serves the messages API: it answers with one tool call or the word "done".
func (m *Model) messages(w http.ResponseWriter, r *http.Request) {
	var q messagesRequest
	body, ok := read(w, r, &q)
	if !ok {
		return
	}
	block, stop := map[string]any{"type": "text", "text": "done"}, "end_turn"
	if q.offersTools() {
		next, more := m.next(r, body, q.result)
		if r.Context().Err() != nil {
			return
		}
		if more {
			block = map[string]any{"type": "tool_use", "id": "toolu_" + next.id, "name": next.name, "input": next.args}
			stop = "tool_use"
		}
	}
	usage := map[string]any{"input_tokens": 10, "output_tokens": 5}
	message := map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": q.Model, "usage": usage,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
	}
	if !q.Stream {
		message["content"], message["stop_reason"] = []any{block}, stop
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(message) // the client is gone
		return
	}
	s := newStream(w)
	s.send("message_start", map[string]any{"message": message})
	delta := map[string]any{"type": "text_delta", "text": "done"}
	if input, isCall := block["input"].(json.RawMessage); isCall {
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(input)}
		block["input"] = map[string]any{}
	} else {
		block["text"] = ""
	}
	s.send("content_block_start", map[string]any{"index": 0, "content_block": block})
	s.send("content_block_delta", map[string]any{"index": 0, "delta": delta})
	s.send("content_block_stop", map[string]any{"index": 0})
	s.send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": usage})
	s.send("message_stop", map[string]any{})
}

// countTokens estimates one token per four bytes of the request.
func countTokens(w http.ResponseWriter, r *http.Request) {
	var body struct{}
	text, ok := read(w, r, &body)
	if ok {
		_ = json.NewEncoder(w).Encode(map[string]int{"input_tokens": len(strings.TrimSpace(string(text))) / 4})
	}
}
