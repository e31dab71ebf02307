package proc

import (
	"fmt"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Stream is one of a command's outputs.
type Stream int

// The outputs.
const (
	Stdout Stream = iota + 1
	Stderr
)

// String returns "stdout" or "stderr".
func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// Capture is what is kept of one output: its beginning and its end. Nothing is
// known about its encoding, and the cut may be in the middle of a character.
type Capture struct {
	// Head is the beginning: all, or 40 % of [Command.MaxOutput] if something is
	// left out.
	Head []byte
	// Tail is the end, 60 % of it; nil if nothing is left out.
	Tail []byte
	// Omitted is how many bytes are left out between them.
	Omitted int64
	// Total is how many bytes the command has written.
	Total int64
}

// String returns what is kept, with a line in between that says how many bytes
// are left out.
func (c Capture) String() string {
	if c.Omitted == 0 {
		return string(c.Head)
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", c.Head, c.Omitted, c.Tail)
}

// Recorder keeps the head and the tail of what is written to it, as the outputs
// of a command are kept: for what a terminal or a file of [Command.Files] brings.
// Make it with [NewRecorder]. It is for one goroutine at a time.
type Recorder struct {
	maxHead, maxTail int
	head             []byte
	tail             []byte // a ring once it has maxTail bytes
	next             int    // where the ring continues
	total            int64
}

// NewRecorder returns a recorder that keeps as many bytes.
func NewRecorder(budget tool.ByteSize) *Recorder {
	budget = max(0, budget)
	head := budget * 2 / 5
	return &Recorder{maxHead: int(head), maxTail: int(budget - head)}
}

// Write never fails.
func (r *Recorder) Write(data []byte) (int, error) {
	n := len(data)
	r.total += int64(n)
	first := min(n, r.maxHead-len(r.head))
	r.head = append(r.head, data[:first]...)
	data = data[first:]
	if len(data) > r.maxTail {
		data = data[len(data)-r.maxTail:]
	}
	grow := min(len(data), r.maxTail-len(r.tail))
	r.tail = append(r.tail, data[:grow]...)
	for data = data[grow:]; len(data) > 0; {
		done := copy(r.tail[r.next:], data)
		r.next = (r.next + done) % r.maxTail
		data = data[done:]
	}
	return n, nil
}

// Capture returns what is kept by now. Nothing may be written after that.
func (r *Recorder) Capture() Capture {
	c := Capture{Head: r.head, Total: r.total, Omitted: r.total - int64(len(r.head)+len(r.tail))}
	tail := append(r.tail[r.next:len(r.tail):len(r.tail)], r.tail[:r.next]...)
	if c.Omitted == 0 {
		c.Head = append(c.Head, tail...)
	} else {
		c.Tail = tail
	}
	return c
}
