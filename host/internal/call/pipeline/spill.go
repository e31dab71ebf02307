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

// MetaWhole is the metadata key under which a truncated result refers to the whole result.
const MetaWhole = "whole_result"

// spilled is a whole result that is kept because its caller receives only a part of it.
type spilled struct {
	handle string
	cursor int   // where the missing part begins
	bytes  int64 // size of the kept result
}

// ReadOn returns the call that reads a kept result from a byte on, as a model writes it.
func ReadOn(handle string, cursor int64) string {
	return fmt.Sprintf(`%s {"handle":%q,"cursor":%d}`, catalog.ResultRead, handle, cursor)
}

// read returns the call that reads the rest.
func (w *spilled) read() string { return ReadOn(w.handle, int64(w.cursor)) }

// note returns the line that tells a model how to read the rest, or "" if nothing is kept.
func (w *spilled) note() string {
	switch {
	case w == nil:
		return ""
	case w.cursor == 0:
		return "[the whole: " + w.read() + "]\n"
	}
	return "[the rest: " + w.read() + "]\n"
}

// annotate adds the reference to the whole result to a result's metadata.
func (w *spilled) annotate(result tool.Result) tool.Result {
	if w == nil {
		return result
	}
	facts := maps.Clone(result.Metadata) // the plugin may share its map
	if facts == nil {
		facts = make(map[string]any, 1)
	}
	facts[MetaWhole] = map[string]any{"handle": w.handle, "cursor": w.cursor, "bytes": w.bytes}
	result.Metadata = facts
	return result
}

// spill keeps texts of a result, joined by line breaks as a caller reads them. If that fails,
// it logs the reason and returns nil.
func (p *Pipeline) spill(c *call, result tool.Result, texts ...[]byte) *spilled {
	if p.opts.Results == nil {
		return nil
	}
	w, err := p.createSpill(c)
	if err != nil {
		p.notKept(c, err)
		return nil
	}
	for i, text := range texts {
		if i > 0 {
			_, _ = w.Write([]byte("\n")) // Keep returns the error
		}
		_, _ = w.Write(text)
	}
	return p.endSpill(c, result, w)
}

// createSpill starts a result of the call's user.
func (p *Pipeline) createSpill(c *call) (*results.Writer, error) {
	w, err := p.opts.Results.Create(c.Caller.User, c.id)
	if err != nil {
		return nil, err
	}
	w.Quota = c.Caller.Limits.Results
	return w, nil
}

// endSpill closes a writer and returns what it has kept.
func (p *Pipeline) endSpill(c *call, result tool.Result, w *results.Writer) *spilled {
	w.Untrusted = IsUntrusted(result)
	bytes, err := w.Keep()
	if err != nil {
		p.notKept(c, err)
		return nil
	}
	return &spilled{handle: c.id, bytes: bytes}
}

func (p *Pipeline) notKept(c *call, err error) {
	p.opts.Logger.Warn("a result that is too long for its caller is not kept", "call", c.id, "error", err)
}

// maxHead bounds the bytes of a stream in memory. A longer stream goes to a file.
const maxHead = 64 * tool.KiB

// stream collects a tool's output while the tool runs. Output that fits into the result needs
// no file. The zero value is ready to use.
type stream struct {
	mu   sync.Mutex // guards everything below
	head bytes.Buffer
	size int64
	file *results.Writer // nil if head has all of it
	lost bool            // the output cannot be kept
}

// put adds a tool's output to the call's stream.
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
		_, _ = s.file.Write(data) // Keep returns the error
	case s.size <= int64(min(c.budget(), maxHead)):
		s.head.Write(data)
	default:
		var err error
		if s.file, err = p.createSpill(c); err != nil {
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

// endStream resets the stream and returns its size. If the output is longer than both the text
// of the result and the caller's budget, endStream also returns the file, which the caller
// must close.
func (c *call) endStream(text int) (file *results.Writer, size int) {
	s := &c.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	file, size = s.file, int(s.size)
	s.head, s.size, s.file, s.lost = bytes.Buffer{}, 0, nil, false
	if file != nil && size <= max(int(c.budget()), text) {
		file.Discard()
		file = nil
	}
	return file, size
}

// dropStream discards the output so far.
func (c *call) dropStream() { c.endStream(math.MaxInt) }
