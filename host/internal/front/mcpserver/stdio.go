package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/front/lines"
)

// maxLine bounds one message from the client. Arguments may have 1 MiB, and JSON may escape
// each byte as six.
const maxLine = 8 << 20

// lineTransport reads and writes one JSON-RPC message a line. Unlike the SDK's own transport,
// it answers an invalid line with an error and keeps reading instead of ending the session.
type lineTransport struct {
	in   io.ReadCloser
	conn *lineConn
}

func newLineTransport(in io.ReadCloser, out io.Writer, session string, deferred *deferred) *lineTransport {
	return &lineTransport{in: in, conn: &lineConn{
		in: in, out: out, writer: lines.NewWriter(out), left: func() {}, session: session, deferred: deferred,
		lines: make(chan line), turn: make(chan struct{}, 1),
	}}
}

// Connect implements [mcp.Transport].
func (t *lineTransport) Connect(context.Context) (mcp.Connection, error) {
	// It ends with the stream or the process: a blocked read cannot always be interrupted.
	go t.conn.readLines(t.in)
	return t.conn, nil
}

// line is a message, or the error that ended the reading.
type line struct {
	message jsonrpc.Message
	err     error
}

type lineConn struct {
	in       io.ReadCloser
	out      io.Writer
	writer   *lines.Writer // to out; closed with the connection
	left     func()        // called when a client that closed its side has gone
	session  string
	deferred *deferred
	lines    chan line
	turn     chan struct{} // held while a message is filled and written
	requests unanswered

	closeOnce sync.Once
}

var _ mcp.Connection = (*lineConn)(nil)

// SessionID implements [mcp.Connection].
func (c *lineConn) SessionID() string { return c.session }

// Read implements [mcp.Connection].
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case l := <-c.lines:
		return l.message, l.err
	case <-c.writer.Closed():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection].
func (c *lineConn) Write(ctx context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(withCode(m))
	if err != nil {
		return err
	}
	if response, ok := m.(*jsonrpc.Response); ok {
		defer c.requests.end(response.ID)
	}
	// Only the message whose turn it is to be written is filled: a hundred results that wait
	// for a slow client are in memory once, not twice.
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-c.writer.Closed():
		c.deferred.drop(data)
		return io.ErrClosedPipe
	case <-ctx.Done():
		c.deferred.drop(data)
		return lines.ErrGivenUp
	}
	if data, err = c.deferred.fill(data); err != nil {
		return err
	}
	return c.writer.Write(ctx.Done(), data)
}

// withCode adds a code to an SDK error that has none, for a request before initialize.
func withCode(m jsonrpc.Message) jsonrpc.Message {
	response, ok := m.(*jsonrpc.Response)
	if !ok || response.Error == nil {
		return m
	}
	if _, ok := errors.AsType[*jsonrpc.Error](response.Error); ok {
		return m
	}
	coded := *response
	coded.Error = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: response.Error.Error()}
	return &coded
}

// Close implements [mcp.Connection].
func (c *lineConn) Close() (err error) {
	c.closeOnce.Do(func() {
		c.writer.Close()
		err = c.in.Close()
	})
	return err
}

// readLines passes each message to Read and answers invalid lines with an error. At the end of
// input, the client may still want its answers: it first waits for the requests in progress.
// Each call ends at its tool's time-out at the latest.
func (c *lineConn) readLines(in io.Reader) {
	r := lines.NewReader(in, maxLine)
	for {
		data, err := r.Next()
		var next line
		switch {
		case errors.Is(err, lines.ErrTooLong):
			c.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message is longer than %d bytes", maxLine))
			continue
		case err != nil:
			next.err = err
			c.awaitAnswers(0)
		case len(data) == 0:
			continue
		default:
			var code int64
			if next.message, code, err = decode(data); err != nil {
				c.refuse(idOf(data), code, err.Error())
				continue
			}
			if !c.requests.begin(next.message) {
				c.refuseRequest(next.message)
				continue
			}
		}
		select {
		case c.lines <- next:
		case <-c.writer.Closed():
			return
		}
		if next.err != nil {
			return
		}
	}
}

// decode decodes one message, or returns the code of the error to send.
func decode(data []byte) (message jsonrpc.Message, code int64, err error) {
	if code, err := checkText(data); err != nil {
		return nil, code, err
	}
	if message, err = jsonrpc.DecodeMessage(data); err != nil {
		return nil, jsonrpc.CodeInvalidRequest, fmt.Errorf("the message is not one of JSON-RPC 2.0: %w", err)
	}
	return message, 0, nil
}

// checkText refuses batches and text that is not exactly one JSON value. The SDK's decoder
// alone would accept the first of several values and ignore the rest.
func checkText(data []byte) (code int64, err error) {
	switch {
	case !json.Valid(data):
		err := json.Unmarshal(data, new(any))
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return jsonrpc.CodeParseError, fmt.Errorf("the message is not JSON, see byte %d: %w", syntax.Offset, err)
		}
		return jsonrpc.CodeParseError, errors.New("the message is not JSON")
	case data[0] == '[':
		return jsonrpc.CodeInvalidRequest, errors.New("batches are not supported, send one message at a time")
	}
	return 0, nil
}

// idOf returns the id of a line that looks like a request, or nil. A relay that passed on the
// request waits for an answer with this id.
func idOf(data []byte) json.RawMessage {
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(data, &request) != nil || request.Method == "" || bytes.ContainsAny(request.ID[:min(1, len(request.ID))], "{[") {
		return nil
	}
	return request.ID
}

// refuse answers a line that is not a valid message. A nil id becomes null.
func (c *lineConn) refuse(id json.RawMessage, code int64, why string) {
	if c.writer.Write(nil, refusal(id, code, why)) != nil {
		_ = c.Close() // the client no longer reads: end its session
	}
}

// codeBusy is in the range that JSON-RPC 2.0, section 5.1, reserves for servers.
const codeBusy = -32000

// refuseRequest answers a request of a client with too many requests under way.
func (c *lineConn) refuseRequest(m jsonrpc.Message) {
	request, _ := m.(*jsonrpc.Request) // begin has checked the type
	text, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: request.ID, Error: &jsonrpc.Error{
		Code: codeBusy, Message: fmt.Sprintf("%d requests of this client wait for their answers already; send it again when some have theirs", maxUnanswered),
	}})
	if err != nil || c.writer.Write(nil, text) != nil {
		_ = c.Close() // the client no longer reads: end its session
	}
}

// refusal returns the answer to an invalid message. "If there was an error in detecting the id
// in the Request object ..., it MUST be Null" (JSON-RPC 2.0, section 5).
func refusal(id json.RawMessage, code int64, why string) []byte {
	text, _ := json.Marshal(map[string]any{ // always encodes
		"jsonrpc": "2.0",
		"id":      id,
		"error":   map[string]any{"code": code, "message": why},
	})
	return text
}
