package sdk

import (
	"io"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/sensitive"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxChunk is the size of the parts in which output is sent: small enough to be
// shown early, large enough to cost little.
const maxChunk = 32 * int(tool.KiB)

// Call is one call of a tool. It describes the caller, and sends progress and
// output before the result. It is valid until the tool's function returns, and
// safe for concurrent use.
type Call struct {
	data   tool.Call
	since  time.Time // when the call was received
	logger *slog.Logger
	host   *connection
	proxy  *atomic.Pointer[url.URL]
	events *events // nil in a preview
}

// ID returns the id of the call, which is also in the host's journal.
func (c *Call) ID() string { return c.data.ID }

// User returns the name of the user that the call is made for.
func (c *Call) User() string { return c.data.Context.User }

// Session returns the id of the caller's session.
func (c *Call) Session() string { return c.data.Context.Session }

// Client returns the name that the client program has given itself. Do not base
// decisions on it.
func (c *Call) Client() string { return c.data.Context.Client }

// Traceparent returns the call's W3C Trace Context, or "".
func (c *Call) Traceparent() string { return c.data.Context.Traceparent }

// Attempt returns 1 for the first attempt of a call, 2 for its first retry.
func (c *Call) Attempt() int { return c.data.Context.Attempt }

// ApprovalID returns the id of the approval that the call runs by, or "".
func (c *Call) ApprovalID() string { return c.data.Context.ApprovalID }

// MaxOutput returns the maximum size of the result. The host truncates a larger
// one; a tool knows better what to leave out.
func (c *Call) MaxOutput() tool.ByteSize { return c.data.Context.MaxOutput }

// Roots returns the directories that the caller may work in. Relative paths
// are relative to the first. Do not modify the slice. Package roots opens files
// below them; see roots.For.
func (c *Call) Roots() []string { return c.data.Context.Roots }

// Protected returns absolute paths that no tool may change. This includes
// everything below them; and no tool may remove or rename a directory above
// them. Do not modify the slice.
func (c *Call) Protected() []string { return c.data.Context.Protected }

// Files returns the host's policy for files by name: sensitive files, those of
// them that the call may use, files that are protected from changes, and files
// that no call may use. If the host sends no policy, the files of
// [sensitive.Default] are sensitive, none of them is allowed, and everything that
// package protect knows is protected. Do not modify the slices.
func (c *Call) Files() tool.FilePolicy {
	if c.data.Context.Files == nil {
		return tool.FilePolicy{Sensitive: sensitive.Default(), Protect: protect.Presets()}
	}
	return *c.data.Context.Files
}

// UserDir returns the directory of the calling user in the plugin's state, or "".
func (c *Call) UserDir() string { return c.data.Context.UserDir }

// PreviewDigest returns the digest of the preview that was approved, or nil. If
// it is set and the state has changed since, the tool must change nothing and
// return [tool.Conflict]; see [CheckPreview].
func (c *Call) PreviewDigest() []byte { return c.data.Context.PreviewDigest }

// InPreview reports whether the call is a preview, which must change nothing.
func (c *Call) InPreview() bool { return c.events == nil }

// Logger returns the plugin's logger. It adds the id of the call to every line.
func (c *Call) Logger() *slog.Logger { return c.logger }

// Progress reports the progress of the call to the caller. It blocks while the
// host does not read. After the end of the call it does nothing.
func (c *Call) Progress(progress tool.Progress) {
	if c.events != nil {
		c.events.progress(progress)
	}
}

// Write sends output of the tool before the result, for people to watch and for
// the host to keep. The output is not part of the result. Write implements
// [io.Writer]. It blocks while the host does not read, and fails after the end
// of the call.
func (c *Call) Write(data []byte) (int, error) { return c.writeChunks(tool.Stdout, data) }

// Stderr returns a writer that sends error output as [Call.Write] sends output.
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
