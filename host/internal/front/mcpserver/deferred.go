package mcpserver

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// deferFrom is the size from which on a part of a result is deferred.
	deferFrom = 16 << 10
	// deferFor is how long a deferred part is kept: many times the interval between encoding
	// and writing a message.
	deferFor = 5 * time.Minute
	// maxDeferred bounds the bytes of all deferred parts. Further parts are encoded at once.
	maxDeferred = 64 << 20
	// markStart begins every mark; markLength is the length of a mark including its quotes.
	markStart  = `"toolhost-deferred-`
	markLength = len(markStart) + 26 + 1
)

// deferred holds the long parts of results until their messages are written. The SDK passes
// every byte of a result through the JSON encoder four times. So the result that it encodes
// contains a short mark in place of each long part, and the writer of the message replaces the
// mark with the part. The zero value is ready to use.
type deferred struct {
	mu    sync.Mutex // guards parts, bytes
	parts map[string]deferredPart
	bytes int // of all parts
}

// deferredPart replaces a mark.
type deferredPart struct {
	data  []byte
	as    partKind
	since time.Time
}

// partKind is how the data of a part becomes JSON.
type partKind int

const (
	asText   partKind = iota // a string
	asBase64                 // a string
	asJSON                   // it is JSON
)

// deferredText is a deferred text of a result.
type deferredText struct {
	*mcp.TextContent // makes it content for the SDK

	deferred *deferred
	data     []byte
}

// MarshalJSON implements [json.Marshaler].
func (t *deferredText) MarshalJSON() ([]byte, error) {
	out := []byte(`{"type":"text","text":`)
	if mark := t.deferred.add(t.data, asText); mark != nil {
		out = append(out, mark...)
	} else {
		out = appendJSONString(out, t.data)
	}
	return append(out, '}'), nil
}

// deferredMedia is the deferred content of an image or a sound.
type deferredMedia struct {
	mcp.Content // makes it content for the SDK

	kind      string
	mediaType string
	deferred  *deferred
	data      []byte
}

// MarshalJSON implements [json.Marshaler].
func (m *deferredMedia) MarshalJSON() ([]byte, error) {
	mark := m.deferred.add(m.data, asBase64)
	if mark == nil {
		return m.Content.MarshalJSON()
	}
	return json.Marshal(map[string]any{"type": m.kind, "mimeType": m.mediaType, "data": json.RawMessage(mark)})
}

// deferredJSON is deferred JSON.
type deferredJSON struct {
	deferred *deferred
	data     json.RawMessage
}

// MarshalJSON implements [json.Marshaler].
func (j *deferredJSON) MarshalJSON() ([]byte, error) {
	if mark := j.deferred.add(j.data, asJSON); mark != nil {
		return mark, nil
	}
	return j.data, nil
}

// appendTo appends the part as one line of JSON.
func (p *deferredPart) appendTo(message []byte) ([]byte, error) {
	switch {
	case p.as == asText:
		return appendJSONString(message, p.data), nil
	case p.as == asBase64:
		message = append(slices.Grow(message, base64.StdEncoding.EncodedLen(len(p.data))+2), '"')
		return append(base64.StdEncoding.AppendEncode(message, p.data), '"'), nil
	case bytes.IndexByte(p.data, '\n') < 0 && bytes.IndexByte(p.data, '\r') < 0:
		return append(message, p.data...), nil
	default:
		whole := bytes.NewBuffer(message)
		err := json.Compact(whole, p.data)
		return whole.Bytes(), err
	}
}

// text returns content with the given text, deferred if it is long.
func (d *deferred) text(data []byte) mcp.Content {
	if len(data) < deferFrom {
		return &mcp.TextContent{Text: string(data)}
	}
	return &deferredText{TextContent: &mcp.TextContent{}, deferred: d, data: data}
}

// media returns an image or a sound as content, deferred if it is long.
func (d *deferred) media(kind string, c tool.Content, content mcp.Content) mcp.Content {
	if len(c.Data) < deferFrom {
		return content
	}
	return &deferredMedia{Content: content, kind: kind, mediaType: c.MediaType, deferred: d, data: c.Data}
}

// structured returns structured content, deferred if it is long.
func (d *deferred) structured(data json.RawMessage) any {
	if len(data) < deferFrom {
		return data
	}
	return &deferredJSON{deferred: d, data: data}
}

// add holds a part and returns its mark, a JSON string. It returns nil if there is no room.
func (d *deferred) add(data []byte, as partKind) []byte {
	mark := markStart + rand.Text() + `"`
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parts == nil {
		d.parts = make(map[string]deferredPart)
	}
	for mark, part := range d.parts { // drop parts whose message was never written
		if now.Sub(part.since) > deferFor {
			d.remove(mark)
		}
	}
	if d.bytes+len(data) > maxDeferred {
		return nil
	}
	d.bytes += len(data)
	d.parts[mark] = deferredPart{data: data, as: as, since: now}
	return []byte(mark)
}

// take removes and returns the part for a mark.
func (d *deferred) take(mark string) (deferredPart, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	part, ok := d.parts[mark]
	d.remove(mark)
	return part, ok
}

// remove removes a part. The caller holds mu.
func (d *deferred) remove(mark string) {
	d.bytes -= len(d.parts[mark].data)
	delete(d.parts, mark)
}

func (d *deferred) none() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.parts) == 0
}

// fill replaces the marks in a complete message with their parts. It returns a message without
// marks unchanged.
func (d *deferred) fill(message []byte) ([]byte, error) {
	f := filler{deferred: d}
	whole, err := f.fill(message)
	if err != nil || len(f.held) == 0 {
		return whole, err
	}
	return append(slices.Clip(whole), f.held...), nil
}

// drop forgets the parts of a message that is not written.
func (d *deferred) drop(message []byte) {
	for !d.none() {
		at, length := findMark(message)
		if length < markLength {
			return
		}
		d.take(string(message[at : at+markLength]))
		message = message[at+1:]
	}
}

// filler replaces marks in messages that are written in pieces of any size.
type filler struct {
	deferred *deferred
	held     []byte // the last bytes written, which may begin a mark
}

// fill adds data and returns the bytes to write, which may share memory with data.
func (f *filler) fill(data []byte) ([]byte, error) {
	if len(f.held) > 0 {
		data = append(f.held, data...)
		f.held = nil
	} else if f.deferred.none() {
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
		part, ok := f.deferred.take(string(data[at:end]))
		if !ok { // not ours: part of the result
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

// findMark returns the position of the first mark and the number of its bytes in data. That is
// fewer than markLength if data ends within a possible mark. Without a mark, it returns the
// end of data and 0.
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

// markIn returns how many bytes at the start of data could belong to a mark.
func markIn(data []byte) int {
	n := 0
	for n < min(len(data), markLength) {
		c := data[n]
		switch {
		case n < len(markStart) && c == markStart[n]:
		case n >= len(markStart) && n < markLength-1 && (c >= 'A' && c <= 'Z' || c >= '2' && c <= '7'): // the alphabet of rand.Text
		case n == markLength-1 && c == '"':
		default:
			return n
		}
		n++
	}
	return n
}
