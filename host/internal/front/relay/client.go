package relay

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/toolhost/toolhost/host/internal/front/lines"
	"github.com/toolhost/toolhost/sdk/tool"
)

// client is a pair of streams that outlive each host.
type client struct {
	out    io.Writer     // written to by writeLines alone
	lines  chan []byte   // what it says; closed at the end of its input
	left   chan struct{} // closed with lines
	writes chan write

	closeOnce sync.Once
	closed    chan struct{}
}

// write is a line to be written, and where to tell how that went.
type write struct {
	line []byte
	done chan<- error // has room for one
}

func newClient(in io.Reader, out io.Writer) *client {
	c := &client{out: out, lines: make(chan []byte), left: make(chan struct{}), writes: make(chan write), closed: make(chan struct{})}
	// Both end with the streams or with close; a read or a write that waits for
	// the other side lasts until the process ends.
	go c.readLines(in)
	go c.writeLines()
	return c
}

func (c *client) close() { c.closeOnce.Do(func() { close(c.closed) }) }

// readLines hands each line to the host that is there, or waits for one.
func (c *client) readLines(in io.Reader) {
	defer close(c.left)
	defer close(c.lines)
	r := lines.NewReader(in, int(maxLine))
	for {
		line, err := r.Next()
		switch {
		case errors.Is(err, lines.ErrTooLong):
			line = failure(nil, tool.InvalidArgument, fmt.Sprintf("the message is longer than %d bytes", maxLine))
			if c.write(nil, line) != nil {
				return
			}
			continue
		case err != nil:
			return
		case len(line) == 0:
			continue
		}
		select {
		case c.lines <- line:
		case <-c.closed:
			return
		}
	}
}

// write returns when a line is written, or when giveUp is closed: a client that
// does not read must not hold up the end.
func (c *client) write(giveUp <-chan struct{}, line []byte) error {
	done := make(chan error, 1)
	select {
	case c.writes <- write{append(line, '\n'), done}:
	case <-c.closed:
		return io.ErrClosedPipe
	case <-giveUp:
		return errGivenUp
	}
	select {
	case err := <-done:
		return err
	case <-c.closed:
		return io.ErrClosedPipe
	case <-giveUp:
		return errGivenUp
	}
}

var errGivenUp = errors.New("the message was given up before it was written")

func (c *client) writeLines() {
	for {
		select {
		case w := <-c.writes:
			_, err := c.out.Write(w.line)
			w.done <- err
		case <-c.closed:
			return
		}
	}
}
