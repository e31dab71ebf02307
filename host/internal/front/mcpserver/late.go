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
	// maxLate bounds the bytes of all parts that wait: a part for which there is no
	// room is encoded where it is.
	maxLate = 64 << 20
	// markStart begins every mark, and markLength is that of a whole one with its quotes.
	markStart  = `"toolhost-late-`
	markLength = len(markStart) + 26 + 1
)

// late holds long parts of results on their way to clients. The SDK takes a result
// through the JSON encoder four times, each time over every byte. So the result that it
// encodes has a mark where a long part belongs, and whoever writes the message puts the
// part there. The zero value is ready.
type late struct {
	mu    sync.Mutex // guards parts, bytes
	parts map[string]latePart
	bytes int // of all parts
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
	out := []byte(`{"type":"text","text":`)
	if mark := t.late.add(t.data, false); mark != nil {
		out = append(out, mark...)
	} else {
		out = appendQuoted(out, t.data)
	}
	return append(out, '}'), nil
}

// lateJSON is JSON that is written late.
type lateJSON struct {
	late *late
	data json.RawMessage
}

// MarshalJSON implements [json.Marshaler].
func (j *lateJSON) MarshalJSON() ([]byte, error) {
	if mark := j.late.add(j.data, true); mark != nil {
		return mark, nil
	}
	return j.data, nil
}

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

// add returns the mark of a part, a string of JSON; nil if there is no room for it.
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
			l.remove(mark)
		}
	}
	if l.bytes+len(data) > maxLate {
		return nil
	}
	l.bytes += len(data)
	l.parts[mark] = latePart{data: data, json: isJSON, since: now}
	return []byte(mark)
}

// take returns the part of a mark, once.
func (l *late) take(mark string) (latePart, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	part, ok := l.parts[mark]
	l.remove(mark)
	return part, ok
}

// remove forgets a part. The caller holds mu.
func (l *late) remove(mark string) {
	l.bytes -= len(l.parts[mark].data)
	delete(l.parts, mark)
}

func (l *late) none() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.parts) == 0
}

// fill puts the parts into a whole message in the place of their marks. The message
// is returned as it is if it has none.
func (l *late) fill(message []byte) ([]byte, error) {
	f := filler{late: l}
	whole, err := f.fill(message)
	if err != nil || len(f.held) == 0 {
		return whole, err
	}
	return append(slices.Clip(whole), f.held...), nil
}

// filler puts the parts into messages that are written in pieces of any size.
type filler struct {
	late *late
	held []byte // the end of what was written: it may be the beginning of a mark
}

// fill returns what can be written now that data has come. It may be data itself.
func (f *filler) fill(data []byte) ([]byte, error) {
	if len(f.held) > 0 {
		data = append(f.held, data...)
		f.held = nil
	} else if f.late.none() {
		return data, nil
	}
	var whole []byte
	var err error
	for {
		at, length := findMark(data)
		if length < markLength {
			f.held, data = slices.Clone(data[at:]), data[:at]
			break
		}
		end := at + markLength
		part, ok := f.late.take(string(data[at:end]))
		if !ok { // it is part of the result
			end = at + 1
			whole, data = append(whole, data[:end]...), data[end:]
			continue
		}
		whole = append(slices.Grow(whole, at+len(part.data)+len(part.data)/16+len(data)), data[:at]...)
		data = data[end:]
		if whole, err = part.appendTo(whole); err != nil {
			return nil, fmt.Errorf("encode a result: %w", err)
		}
	}
	if whole == nil {
		return data, nil
	}
	return append(whole, data...), nil
}

// findMark returns where the first mark is, or what can be the beginning of one at
// the end of data, and how much of it is there; the end of data and 0 if there is
// none.
func findMark(data []byte) (at, length int) {
	for ; ; at++ {
		next := bytes.IndexByte(data[at:], markStart[0])
		if next < 0 {
			return len(data), 0
		}
		at += next
		if length = markIn(data[at:]); length == markLength || length == len(data)-at {
			return at, length
		}
	}
}

// markIn returns how many bytes at the start of data a mark can begin with.
func markIn(data []byte) int {
	n := 0
	for n < min(len(data), markLength) {
		c := data[n]
		switch {
		case n < len(markStart) && c == markStart[n]:
		case n >= len(markStart) && n < markLength-1 && (c >= 'A' && c <= 'Z' || c >= '2' && c <= '7'): // as in rand.Text
		case n == markLength-1 && c == '"':
		default:
			return n
		}
		n++
	}
	return n
}
