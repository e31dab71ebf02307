package relay

import (
	"errors"
	"fmt"
	"io"

	"github.com/toolhost/toolhost/host/internal/front/lines"
	"github.com/toolhost/toolhost/sdk/tool"
)

// client is a pair of streams that outlive each host.
type client struct {
	out    io.Writer // written by writer only
	writer *lines.Writer
	lines  chan []byte   // the client's messages; closed at the end of its input
	left   chan struct{} // closed with lines
}

func newClient(in io.Reader, out io.Writer) *client {
	c := &client{out: out, writer: lines.NewWriter(out), lines: make(chan []byte), left: make(chan struct{})}
	go c.readLines(in) // ends with in or with close; a read that waits lasts until the process ends
	return c
}

func (c *client) close() { c.writer.Close() }

// readLines passes each line to the present host, or waits for one.
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
		case <-c.writer.Closed():
			return
		}
	}
}

// write returns when a line is written, or when giveUp is closed.
func (c *client) write(giveUp <-chan struct{}, line []byte) error {
	return c.writer.Write(giveUp, line)
}
