package sdk

import (
	"io"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/sensitive"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxChunk is the size in which output is sent: small enough to be shown as it
// comes, large enough to cost little.
const maxChunk = 32 * int(tool.KiB)

// Call is an author's handle on one call: what is known about the caller, and
// what can be said before the result. It is valid until the tool's function
// returns and may be used by several goroutines.
type Call struct {
	data   tool.Call
	logger hclog.Logger
	host   *connection
	events *events // nil in a preview
}

// ID returns the call's id, as the host's journal has it.
func (c *Call) ID() string { return c.data.ID }

// User returns the name of the user on whose behalf the call is made.
func (c *Call) User() string { return c.data.Context.User }

// Session returns the id of the caller's session.
func (c *Call) Session() string { return c.data.Context.Session }

// Client returns the name of the client program, as it says itself: do not
// decide anything by it.
func (c *Call) Client() string { return c.data.Context.Client }

// Traceparent returns the call's W3C Trace Context, or "".
func (c *Call) Traceparent() string { return c.data.Context.Traceparent }

// Attempt returns 1 for the first attempt of a call, 2 for its first retry.
func (c *Call) Attempt() int { return c.data.Context.Attempt }

// ApprovalID returns the id of the approval that lets the call run, or "".
func (c *Call) ApprovalID() string { return c.data.Context.ApprovalID }

// MaxOutput returns the size that the result should have at most. The host
// cuts what is larger; a tool that shapes its own result cuts better.
func (c *Call) MaxOutput() tool.ByteSize { return c.data.Context.MaxOutput }

// Roots returns the directories that the caller may work in. Relative paths
// are relative to the first. The slice must not be changed.
func (c *Call) Roots() []string { return c.data.Context.Roots }

// Protected returns absolute paths that no tool may change, nor what is below
// them; nor may it remove or rename a directory above them. The slice must not
// be changed.
func (c *Call) Protected() []string { return c.data.Context.Protected }

// Files returns what the host says of files by their names: which usually hold secrets,
// and which of these the call may use; which are protected from changes; and which no call
// may use. Of a host that
// says nothing, sensitive files are those of [sensitive.Default], of which none is allowed,
// and all that package protect knows is protected. The slices must not be changed.
func (c *Call) Files() tool.FilePolicy {
	if c.data.Context.Files == nil {
		return tool.FilePolicy{Sensitive: sensitive.Default(), Protect: protect.Presets()}
	}
	return *c.data.Context.Files
}

// UserDir returns a directory of the user's own in the plugin's state, or "".
func (c *Call) UserDir() string { return c.data.Context.UserDir }

// PreviewDigest returns the digest of the preview that was approved; nil if
// there was none. If it is set and the state is no longer that one, the tool
// must do nothing and answer [tool.Conflict].
func (c *Call) PreviewDigest() []byte { return c.data.Context.PreviewDigest }

// Logger returns the plugin's logger, with the call's id on every line.
func (c *Call) Logger() hclog.Logger { return c.logger }

// Progress tells the caller how far the call has come. It blocks while the
// host does not read, and drops what comes after the call's end.
func (c *Call) Progress(progress tool.Progress) {
	if c.events != nil {
		c.events.progress(progress)
	}
}

// Write sends a part of the tool's whole output as it comes, for people to
// watch and for the host to keep. It is not part of the result. It implements
// [io.Writer], blocks while the host does not read, and fails once the call
// has ended.
func (c *Call) Write(data []byte) (int, error) { return c.writeChunks(tool.Stdout, data) }

// Stderr returns a writer that does what [Call.Write] does for the error
// output of, say, a command.
func (c *Call) Stderr() io.Writer { return stderrWriter{c} }

var _ io.Writer = (*Call)(nil)

type stderrWriter struct{ call *Call }

func (w stderrWriter) Write(data []byte) (int, error) {
	return w.call.writeChunks(tool.Stderr, data)
}

func (c *Call) writeChunks(stream tool.Stream, data []byte) (int, error) {
	if c.events == nil {
		return len(data), nil
	}
	for sent := 0; sent < len(data); {
		n := min(len(data)-sent, maxChunk)
		if err := c.events.chunk(tool.Chunk{Stream: stream, Data: data[sent : sent+n]}); err != nil {
			return sent, err
		}
		sent += n
	}
	return len(data), nil
}
