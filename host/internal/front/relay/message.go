package relay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// message is the part of a message that the relay reads.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`

	readable bool // it is a JSON object
}

// parse reads a line. A line that is not a message is neither a request nor an answer:
// the host reports what is wrong with it.
func parse(line []byte) message {
	var m message
	if json.Unmarshal(line, &m) != nil {
		return message{}
	}
	m.readable = true
	return m
}

func (m message) isRequest() bool { return m.Method != "" && m.hasID() }
func (m message) isAnswer() bool  { return m.Method == "" && m.hasID() }
func (m message) hasID() bool     { return len(m.ID) > 0 && string(m.ID) != "null" }

// maxExact is the bound below which a float64 represents every whole number.
const maxExact = 1 << 53

// key returns an id by its value: 1 and 1.0 are equal. A number that a float64 cannot
// represent exactly is compared by its text.
func key(id json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(id))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return string(id)
	}
	if number, ok := v.(json.Number); ok {
		if f, err := number.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) < maxExact {
			return fmt.Sprintf("number %d", int64(f))
		}
	}
	return fmt.Sprintf("%T %v", v, v)
}

// with returns a message with another value of a field.
func with(line []byte, field string, value json.RawMessage) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) != nil {
		return line
	}
	fields[field] = value
	changed, err := json.Marshal(fields)
	if err != nil {
		return line
	}
	return changed
}

// Codes of JSON-RPC 2.0, section 5.1.
const (
	invalidRequest = -32600
	internalError  = -32603
)

// failure returns the answer to a request that reached no host, or whose host is gone.
// Without an id it is the answer to a line that is not a message.
func failure(id json.RawMessage, code tool.Code, text string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	number := internalError
	if code == tool.InvalidArgument {
		number = invalidRequest
	}
	line, _ := json.Marshal(map[string]any{ // never fails: the id was parsed
		"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": number, "message": text, "data": map[string]any{"code": code}},
	})
	return line
}

// The id of a host's question carries the number of the host. So a late answer to a former host
// is never mistaken for an answer to the next one, which counts from 1 again.

// questionOf returns a request of a host as the client gets it.
func questionOf(host int, m message, line []byte) []byte {
	id, _ := json.Marshal(prefix(host) + string(m.ID)) // never fails
	return with(line, "id", id)
}

// cancellationOf returns a host's cancellation of its question as the client gets it.
func cancellationOf(host int, line []byte) []byte {
	var n struct {
		Params map[string]json.RawMessage `json:"params"`
	}
	if json.Unmarshal(line, &n) != nil || n.Params["requestId"] == nil {
		return line
	}
	n.Params["requestId"], _ = json.Marshal(prefix(host) + string(n.Params["requestId"])) // never fails
	params, err := json.Marshal(n.Params)
	if err != nil {
		return line
	}
	return with(line, "params", params)
}

// answerTo returns an answer of the client as the host gets it, or false if that host did
// not ask.
func answerTo(host int, m message, line []byte) (answer []byte, asked bool) {
	var id string
	if json.Unmarshal(m.ID, &id) != nil {
		return nil, false
	}
	own, asked := strings.CutPrefix(id, prefix(host))
	if !asked || !json.Valid([]byte(own)) {
		return nil, false
	}
	return with(line, "id", json.RawMessage(own)), true
}

func prefix(host int) string { return fmt.Sprintf("host-%d:", host) }
