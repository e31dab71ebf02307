package relay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/toolhost/toolhost/sdk/tool"
)

// message is what a relay looks at of a message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`

	readable bool // it is a JSON object
}

// parse reads a line. One that is no message is neither a request nor an
// answer: the host says what is wrong with it.
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

// maxExact is the largest whole number up to which a float64 tells all others
// apart.
const maxExact = 1 << 53

// key is an id by its value: 1 and 1.0 are one. A number of which a float64 is
// no exact value is its text.
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

// with is a message with another value of a field.
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

// failure is the answer to a request that reached no host, or whose host has
// gone. Without an id it is the answer to what is no message.
func failure(id json.RawMessage, code tool.Code, text string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	number := internalError
	if code == tool.InvalidArgument {
		number = invalidRequest
	}
	line, _ := json.Marshal(map[string]any{ // never fails: the id has been read
		"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": number, "message": text, "data": map[string]any{"code": code}},
	})
	return line
}
