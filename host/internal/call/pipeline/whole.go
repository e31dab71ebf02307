package pipeline

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"sync"

	"github.com/toolhost/toolhost/host/internal/call/results"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// MetaWhole is the key of the metadata that says where the whole of a result
// can be read, if its caller got a part.
const MetaWhole = "whole_result"

// whole is a result that is kept because its caller gets a part of it only.
type whole struct {
	handle string
	cursor int   // where what the caller did not get begins
	bytes  int64 // that can be read
}

// ReadOn is the call that reads a kept result from a byte on, as a model writes
// it.
func ReadOn(handle string, cursor int64) string {
	return fmt.Sprintf(`%s {"handle":%q,"cursor":%d}`, catalog.ResultRead, handle, cursor)
}

// read is the call that reads on.
func (w *whole) read() string { return ReadOn(w.handle, int64(w.cursor)) }

// note is the line that tells a model how to read on, "" if nothing is kept.
func (w *whole) note() string {
	switch {
	case w == nil:
		return ""
	case w.cursor == 0:
		return "[the whole: " + w.read() + "]\n"
	}
	return "[the rest: " + w.read() + "]\n"
}

// tell returns a result that says in its metadata where the whole is.
func (w *whole) tell(result tool.Result) tool.Result {
	if w == nil {
		return result
	}
	facts := maps.Clone(result.Metadata) // the plugin's, which others may hold
	if facts == nil {
		facts = make(map[string]any, 1)
	}
	facts[MetaWhole] = map[string]any{"handle": w.handle, "cursor": w.cursor, "bytes": w.bytes}
	result.Metadata = facts
	return result
}

// keepWhole keeps texts, joined by line breaks as a caller reads them. It
// returns nil if they cannot be kept, which the log tells.
func (p *Pipeline) keepWhole(c *call, texts ...[]byte) *whole {
	if p.opts.Results == nil {
		return nil
	}
	w, err := p.opts.Results.Create(c.Caller.User, c.id)
	if err != nil {
		p.notKept(c, err)
		return nil
	}
	for i, text := range texts {
		if i > 0 {
			_, _ = w.Write([]byte("\n")) // Keep says what was wrong
		}
		_, _ = w.Write(text)
	}
	return p.kept(c, w)
}

// kept ends a writer.
func (p *Pipeline) kept(c *call, w *results.Writer) *whole {
	bytes, err := w.Keep()
	if err != nil {
		p.notKept(c, err)
		return nil
	}
	return &whole{handle: c.id, bytes: bytes}
}

func (p *Pipeline) notKept(c *call, err error) {
	p.opts.Logger.Warn("a result that is too long for its caller is not kept", "call", c.id, "error", err)
}

// maxHead bounds what of a stream is in memory before a file takes it.
const maxHead = 64 * tool.KiB

// stream collects what a tool puts out while it runs. The zero value is ready.
// A tool that puts nothing out costs nothing, and one that puts out what its
// result may hold anyway no file.
type stream struct {
	mu   sync.Mutex // guards everything below
	head bytes.Buffer
	size int64
	file *results.Writer // nil: all of it is in head
	lost bool            // it cannot be kept
}

// put takes a part of what a tool puts out.
func (p *Pipeline) put(c *call, data []byte) {
	if p.opts.Results == nil || c.entry.OfHost() {
		return
	}
	s := &c.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size += int64(len(data))
	switch {
	case s.lost:
	case s.file != nil:
		_, _ = s.file.Write(data) // Keep says what was wrong
	case s.size <= int64(min(c.entry.MaxOutput, maxHead)):
		s.head.Write(data)
	default:
		var err error
		if s.file, err = p.opts.Results.Create(c.Caller.User, c.id); err != nil {
			p.notKept(c, err)
			s.lost = true
			break
		}
		for _, part := range [][]byte{s.head.Bytes(), data} {
			_, _ = s.file.Write(part)
		}
		s.head = bytes.Buffer{}
	}
}

// endStream gives up what a tool has put out, and returns the file that took it
// if it is longer than the text of the result and than what fits into one. The
// caller ends the file.
func (c *call) endStream(text int) (file *results.Writer, size int) {
	s := &c.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	file, size = s.file, int(s.size)
	s.head, s.size, s.file, s.lost = bytes.Buffer{}, 0, nil, false
	if file != nil && size <= max(int(c.entry.MaxOutput), text) {
		file.Discard()
		file = nil
	}
	return file, size
}

// dropStream gives up what a tool has put out.
func (c *call) dropStream() { c.endStream(math.MaxInt) }
