package relay

import "io"

// Pipe returns the two sides of a connection to a host in this process.
func Pipe() (toHost Conn, host *HostSide) {
	in, said := io.Pipe()
	answers, out := io.Pipe()
	return &clientSide{answers, said}, &HostSide{In: in, Out: out}
}

// HostSide are the streams of a host that a relay is connected to.
type HostSide struct {
	In  io.ReadCloser
	Out io.WriteCloser
}

// Close tells the relay that the host has gone.
func (h *HostSide) Close() error {
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

// CloseWrite implements [Conn].
func (c *clientSide) CloseWrite() error { return c.out.Close() }

// Close implements [io.Closer].
func (c *clientSide) Close() error {
	_ = c.out.Close() // a pipe's never fails
	return c.PipeReader.Close()
}
