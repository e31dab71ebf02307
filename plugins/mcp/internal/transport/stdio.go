// Package transport connects the MCP client to servers that nobody trusts: to the standard input and
// output of a process, and over HTTP. It bounds the size of messages, the requests that a
// server makes at once, and what it may write besides messages.
package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxRequests is the number of requests of the server that wait for an answer.
	maxRequests = 64
	// maxStray is the number of lines in a row that are no message, after which the server ends.
	maxStray = 100
	// maxBatch is the number of messages in a batch of protocol revision 2025-03-26.
	maxBatch = 1000
	// queued is the number of messages that wait until the server reads them.
	queued = 16
	// grace is the time for a server to end after its input has ended; killTime is the time for
	// the end of all its processes after that.
	grace, killTime = 300 * time.Millisecond, 500 * time.Millisecond
)

// Stdio is a started server that speaks over its standard input and output. It is an
// [mcp.Transport] for one connection.
type Stdio struct {
	process *proc.Process
	opts    StdioOptions
	tail    *Tail

	out     chan []byte          // lines of standard output; closed when the process has ended
	in      chan []byte          // messages for standard input
	ignored chan jsonrpc.Message // an answer in place of the server
	closed  chan struct{}        // closed by Close or fail
	running sync.WaitGroup

	part  []byte // of a line that is not complete; used by the process's output only
	queue []jsonrpc.Message
	stray int // lines in a row that are no message

	mu       sync.Mutex  // guards everything below
	shut     bool        // closed is closed
	ours     bool        // Close was called while the process ran
	cause    error       // why the connection ended
	requests int         // of the server, without an answer
	timer    *time.Timer // of expectDiscover; nil without one
}

// StdioOptions are the options of a server's process.
type StdioOptions struct {
	// Command is the program. [StartStdio] sets its streams.
	Command proc.Command
	// MaxMessage is the maximum size of one message of the server.
	MaxMessage tool.ByteSize
	// Patience is how long the server may take to answer the first request of the newest protocol
	// revision, [methodDiscover]. Some older servers ignore it; they get an older request then.
	Patience time.Duration
	// Log gets each line that the server writes besides messages; see [Tail]. It must not block.
	Log func(line string)
	// Redact hides secrets in a line.
	Redact func(line string) string
}

// StartStdio starts a server. The process ends with ctx, with [Stdio.Close], or by itself. Then
// everything that it has started is killed.
func StartStdio(ctx context.Context, opts StdioOptions) (*Stdio, error) {
	s := &Stdio{
		opts: opts, tail: &Tail{Line: opts.Log, Redact: opts.Redact},
		out: make(chan []byte), in: make(chan []byte, queued), closed: make(chan struct{}), ignored: make(chan jsonrpc.Message),
	}
	c := opts.Command
	c.OpenStdin, c.MaxOutput, c.Output = true, -1, s.output
	var err error
	if s.process, err = proc.Start(ctx, c); err != nil {
		return nil, err
	}
	s.running.Go(s.write)   // ends with the process or the connection
	s.running.Go(s.awaited) // ends with the process
	s.running.Go(s.killed)  // ends with the process or the connection
	return s, nil
}

// Connect implements [mcp.Transport].
func (s *Stdio) Connect(context.Context) (mcp.Connection, error) { return s, nil }

// SessionID implements [mcp.Connection]: a process has one session.
func (s *Stdio) SessionID() string { return "" }

// output gets what the server writes, in the order in which it arrives.
func (s *Stdio) output(from proc.Stream, data []byte) {
	if from == proc.Stderr {
		s.tail.Write(data)
		return
	}
	for {
		line, rest, complete := bytes.Cut(data, []byte("\n"))
		if len(s.part)+len(line) > int(s.opts.MaxMessage) {
			s.part = nil
			s.fail(fmt.Errorf("it sent a message that is larger than %s", s.opts.MaxMessage))
			return
		}
		s.part = append(s.part, line...)
		if !complete {
			return
		}
		select {
		case s.out <- s.part: // a server that writes faster than it is read waits here
		case <-s.closed:
			return
		}
		s.part, data = nil, rest
	}
}

// awaited waits for the end of the process, after which it writes nothing more.
func (s *Stdio) awaited() {
	result, err := s.process.Wait()
	switch {
	case err != nil:
		err = errors.New("it ended, and its exit code is unknown")
	case result.Signal != 0:
		err = fmt.Errorf("it was ended by the signal %q", result.Signal)
	default:
		err = fmt.Errorf("it ended with exit code %d", result.ExitCode)
	}
	s.mu.Lock()
	if s.cause == nil && !s.ours {
		s.cause = err
	}
	s.mu.Unlock()
	close(s.out)
}

// killed kills a server whose connection has failed.
func (s *Stdio) killed() {
	select {
	case <-s.process.Done():
	case <-s.closed:
		if s.Cause() != nil {
			s.process.Kill()
		}
	}
}

// write writes messages to the server. A server that does not read keeps them in the queue.
func (s *Stdio) write() {
	for {
		select {
		case message := <-s.in:
			if _, err := s.process.Stdin.Write(message); err != nil {
				return // it does not read anymore, and ends by itself or with the connection
			}
		case <-s.closed:
			return
		case <-s.process.Done():
			return
		}
	}
}

// Read implements [mcp.Connection]. Lines that are no message are logged and skipped.
func (s *Stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(s.queue) > 0 {
			next := s.queue[0]
			s.queue = s.queue[1:]
			return next, s.count(next, 1)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.closed:
			return nil, io.EOF
		case answer := <-s.ignored:
			return answer, nil
		case line, ok := <-s.out:
			if !ok {
				return nil, io.EOF
			}
			if err := s.read(line); err != nil {
				s.fail(err)
				return nil, err
			}
		}
	}
}

// read queues the messages in a line.
func (s *Stdio) read(line []byte) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	messages, err := decode(line)
	if err == nil {
		s.stray, s.queue = 0, messages
		return nil
	}
	text := display.Visible(s.opts.Redact(string(display.Head(line, maxLine))))
	s.opts.Log("no message on standard output: " + text)
	if s.stray++; s.stray > maxStray {
		return fmt.Errorf("it writes text to standard output, where only messages belong, such as: %s", display.Cut(text, 200))
	}
	return nil
}

// decode reads one message, or a batch of them.
func decode(line []byte) ([]jsonrpc.Message, error) {
	parts := []json.RawMessage{line}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &parts); err != nil {
			return nil, err
		}
		if len(parts) > maxBatch {
			return nil, fmt.Errorf("a batch of %d messages, more than %d", len(parts), maxBatch)
		}
	}
	messages := make([]jsonrpc.Message, 0, len(parts))
	for _, part := range parts {
		message, err := jsonrpc.DecodeMessage(part)
		if err != nil {
			return nil, err
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// methodDiscover is the first request of protocol revision 2026-07-28.
const methodDiscover = "server/discover"

// expectDiscover answers [methodDiscover] in place of a server that ignores it. A late answer of the
// server is to no request then.
func (s *Stdio) expectDiscover(message jsonrpc.Message) {
	request, ok := message.(*jsonrpc.Request)
	if !ok || request.Method != methodDiscover {
		return
	}
	ignored := &jsonrpc.Response{ID: request.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the server does not answer " + methodDiscover}}
	timer := time.AfterFunc(s.opts.Patience, func() { // ends when it is read, or with the connection
		select {
		case s.ignored <- ignored:
		case <-s.closed:
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = timer
}

// count counts the requests of the server that wait for an answer.
func (s *Stdio) count(message jsonrpc.Message, by int) error {
	if request, ok := message.(*jsonrpc.Request); ok && !request.IsCall() {
		return nil
	} else if ok != (by > 0) {
		return nil
	}
	s.mu.Lock()
	s.requests = max(0, s.requests+by)
	over := s.requests > maxRequests
	s.mu.Unlock()
	if !over {
		return nil
	}
	err := fmt.Errorf("it sent more than %d requests without waiting for their answers", maxRequests)
	s.fail(err)
	return err
}

// Write implements [mcp.Connection]. It returns when the message is queued, or with ctx: a server
// that does not read holds up nobody.
func (s *Stdio) Write(ctx context.Context, message jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	_ = s.count(message, -1) // an answer never exceeds the limit
	s.expectDiscover(message)
	select {
	case s.in <- append(data, '\n'):
		note(ctx)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return io.ErrClosedPipe
	case <-s.process.Done():
		return io.ErrClosedPipe
	}
}

// fail ends the connection for a reason. It does not wait, since the process's output calls it.
func (s *Stdio) fail(cause error) {
	s.mu.Lock()
	if s.cause == nil && !s.ours {
		s.cause = cause
	}
	s.mu.Unlock()
	s.shutDown()
}

func (s *Stdio) shutDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	if !s.shut {
		s.shut = true
		close(s.closed)
	}
}

// Close implements [mcp.Connection]. It gives the server a moment to end, kills what is left, and
// waits for that.
func (s *Stdio) Close() error {
	select {
	case <-s.process.Done():
	default:
		s.mu.Lock()
		s.ours = true
		s.mu.Unlock()
	}
	s.shutDown()
	_ = s.process.Stdin.Close() // of a process that may have ended
	if !s.ends(grace) {
		s.process.Kill()
		if !s.ends(killTime) {
			return errors.New("the server's processes do not end")
		}
	}
	s.running.Wait()
	return nil
}

// ends reports whether the process ends in time.
func (s *Stdio) ends(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-s.process.Done():
		return true
	case <-timer.C:
		return false
	}
}

// Cause returns why the connection ended, such as the exit code of the server; nil if it is open or
// was closed by [Stdio.Close].
func (s *Stdio) Cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// LastLines returns the last lines that the server has written to standard error.
func (s *Stdio) LastLines(most int) string { return s.tail.Last(most) }
