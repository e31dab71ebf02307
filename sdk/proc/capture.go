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

// Capture is the recorded part of one output: its beginning and its end. The output may have
// any encoding, and the cut may be in the middle of a character.
type Capture struct {
	// Head is the beginning: all of the output, or 40 % of [Command.MaxOutput] if something is
	// left out.
	Head []byte
	// Tail is the end, the other 60 %; nil if nothing is left out.
	Tail []byte
	// Omitted is the number of bytes between Head and Tail that are left out.
	Omitted int64
	// Total is the number of bytes that the command wrote.
	Total int64
}

// String returns Head and Tail, with a line between them that says how many bytes are left
// out.
func (c Capture) String() string {
	if c.Omitted == 0 {
		return string(c.Head)
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", c.Head, c.Omitted, c.Tail)
}

// Recorder records the beginning and the end of what is written to it, as for a command's
// output. Use it for the output of a terminal or of a file in [Command.Files]. Create it with
// [NewRecorder]. Only one goroutine may use it at a time.
type Recorder struct {
	maxHead, maxTail int
	head             []byte
	tail             []byte // a ring once it has maxTail bytes
	next             int    // where the ring continues
	total            int64
}

// NewRecorder returns a recorder that keeps up to budget bytes.
func NewRecorder(budget tool.ByteSize) *Recorder {
	budget = max(0, budget)
	head := budget * 2 / 5
	return &Recorder{maxHead: int(head), maxTail: int(budget - head)}
}

// Write implements [io.Writer]. It never fails.
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

// Capture returns what was recorded. Do not write afterwards.
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
