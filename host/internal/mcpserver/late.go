package mcpserver

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// lateFrom is the size from which a part of a result is written late.
	lateFrom = 16 << 10
	// lateFor is how long a part waits to be written: many times what lies between the
	// encoding of a message and its writing.
	lateFor = 5 * time.Minute
	// markStart begins every mark, and markLength is that of a whole one with its quotes.
	markStart  = `"toolhost-late-`
	markLength = len(markStart) + 26 + 1
)

// late holds long parts of results on their way to clients. The SDK takes a result
// through the JSON encoder four times, each time over every byte. So the result that it
// encodes has a mark where a long part belongs, and whoever writes the message puts the
// part there. The zero value is ready.
type late struct {
	mu    sync.Mutex // guards parts
	parts map[string]latePart
}

// latePart is what belongs in the place of a mark, as JSON or as text.
type latePart struct {
	data  []byte
	json  bool
	since time.Time
}

// lateText is a text of a result that is written late.
type lateText struct {
	*mcp.TextContent // what the SDK takes it for

	late *late
	data []byte
}

// MarshalJSON implements [json.Marshaler].
func (t *lateText) MarshalJSON() ([]byte, error) {
	return append(append([]byte(`{"type":"text","text":`), t.late.add(t.data, false)...), '}'), nil
}

// lateJSON is JSON that is written late.
type lateJSON struct {
	late *late
	data json.RawMessage
}

// MarshalJSON implements [json.Marshaler].
func (j *lateJSON) MarshalJSON() ([]byte, error) { return j.late.add(j.data, true), nil }

// appendTo appends the part as JSON, in one line.
func (p *latePart) appendTo(message []byte) ([]byte, error) {
	switch {
	case !p.json:
		return appendQuoted(message, p.data), nil
	case bytes.IndexByte(p.data, '\n') < 0 && bytes.IndexByte(p.data, '\r') < 0:
		return append(message, p.data...), nil
	default:
		whole := bytes.NewBuffer(message)
		err := json.Compact(whole, p.data)
		return whole.Bytes(), err
	}
}

// text returns a text as part of a result.
func (l *late) text(data []byte) mcp.Content {
	if len(data) < lateFrom {
		return &mcp.TextContent{Text: string(data)}
	}
	return &lateText{TextContent: &mcp.TextContent{}, late: l, data: data}
}

// structured returns JSON as structured content of a result.
func (l *late) structured(data json.RawMessage) any {
	if len(data) < lateFrom {
		return data
	}
	return &lateJSON{late: l, data: data}
}

// add returns the mark of a part, a string of JSON.
func (l *late) add(data []byte, isJSON bool) []byte {
	mark := markStart + rand.Text() + `"`
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parts == nil {
		l.parts = make(map[string]latePart)
	}
	for mark, part := range l.parts { // those whose message was never written
		if now.Sub(part.since) > lateFor {
			delete(l.parts, mark)
		}
	}
	l.parts[mark] = latePart{data: data, json: isJSON, since: now}
	return []byte(mark)
}

// take returns the part of a mark, once.
func (l *late) take(mark string) (latePart, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	part, ok := l.parts[mark]
	delete(l.parts, mark)
	return part, ok
}

func (l *late) none() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.parts) == 0
}

// fill puts the parts into a message in the place of their marks. The message is
// returned as it is if it has none.
func (l *late) fill(message []byte) ([]byte, error) {
	if l.none() {
		return message, nil
	}
	var whole []byte
	var err error
	for {
		at := bytes.Index(message, []byte(markStart))
		if at < 0 || at+markLength > len(message) {
			break
		}
		end := at + markLength
		part, ok := l.take(string(message[at:end]))
		if !ok { // it is part of the result
			whole = append(whole, message[:end]...)
			message = message[end:]
			continue
		}
		whole = append(slices.Grow(whole, at+len(part.data)+len(part.data)/16+len(message)), message[:at]...)
		message = message[end:]
		if whole, err = part.appendTo(whole); err != nil {
			return nil, fmt.Errorf("encode a result: %w", err)
		}
	}
	if whole == nil {
		return message, nil
	}
	return append(whole, message...), nil
}
