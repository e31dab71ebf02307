package relay_test

import (
	"io"

	"github.com/toolhost/toolhost/host/internal/front/relay"
)

// newPipe returns the two sides of a connection to a host in this process.
func newPipe() (toHost relay.Conn, host *hostSide) {
	in, said := io.Pipe()
	answers, out := io.Pipe()
	return &clientSide{answers, said}, &hostSide{In: in, Out: out}
}

// hostSide are the streams of a host that a relay is connected to.
type hostSide struct {
	In  io.ReadCloser
	Out io.WriteCloser
}

// Close tells the relay that the host has gone.
func (h *hostSide) Close() error {
	_ = h.In.Close() // a pipe's never fails
	return h.Out.Close()
}

// clientSide is the relay's side of a pipe.
type clientSide struct {
	*io.PipeReader

	out *io.PipeWriter
}

// Write implements [io.Writer].
func (c *clientSide) Write(p []byte) (int, error) { return c.out.Write(p) }

// CloseWrite implements [relay.Conn].
func (c *clientSide) CloseWrite() error { return c.out.Close() }

// Close implements [io.Closer].
func (c *clientSide) Close() error {
	_ = c.out.Close() // a pipe's never fails
	return c.PipeReader.Close()
}
