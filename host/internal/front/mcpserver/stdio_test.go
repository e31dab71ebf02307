package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/host/internal/front/lines"
)

const ping = `{"jsonrpc":"2.0","method":"ping"}` // no id, so no answer is due

// TestLinesThatAreNoMessages checks that each invalid line is answered and that the next
// message still arrives.
func TestLinesThatAreNoMessages(t *testing.T) {
	for _, tt := range []struct {
		name, line, want string
	}{
		{"not JSON", `{"jsonrpc":`, `"code":-32700,"message":"the message is not JSON, see byte 11`},
		{"text", `hello`, `"code":-32700,"message":"the message is not JSON, see byte 1:`},
		{"two values", ping + ping, `"code":-32700`},
		{"a batch", "[" + ping + "]", `"code":-32600,"message":"batches are not supported`},
		{"a number", `42`, `"code":-32600,"message":"the message is not one of JSON-RPC 2.0`},
		{"an object", `{"a":1}`, `"code":-32600`},
		{"another version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `"code":-32600`},
		{"no version", `{"id":7,"method":"ping"}`, `"code":-32600`},
		{"too long", `"` + strings.Repeat("x", maxLine) + `"`, `"code":-32600,"message":"the message is longer than 8388608 bytes"`},
		{"too long, of lines' length", strings.Repeat("x", maxLine+1), `"code":-32600,"message":"the message is longer than`},
		{"NUL bytes", "\x00\x00", `"code":-32700`},
		{"an empty line", "", ""},
		{"a carriage return", "\r", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			transport := newLineTransport(io.NopCloser(strings.NewReader(tt.line+"\n"+ping+"\n")), &out, "", &deferred{})
			c, err := transport.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			message, err := c.Read(t.Context())
			if request, ok := message.(*jsonrpc.Request); err != nil || !ok || request.Method != "ping" {
				t.Errorf("Read() = %v, %v; want the ping that follows", message, err)
			}
			if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("the last Read() = %v, want EOF", err)
			}
			answer := out.String()
			if tt.want == "" && answer != "" || !strings.Contains(answer, tt.want) {
				t.Errorf("answer = %q, want it to contain %q", answer, tt.want)
			}
			id := `"id":null`
			switch tt.name { // those whose id can be read, for a relay
			case "another version":
				id = `"id":1`
			case "no version":
				id = `"id":7`
			}
			if tt.want != "" && (strings.Count(answer, `"jsonrpc"`) != 1 || !strings.Contains(answer, id)) {
				t.Errorf("answer = %q, want one with %s", answer, id)
			}
		})
	}
}

// TestLastLineNeedsNoNewline reads a last message without a newline.
func TestLastLineNeedsNoNewline(t *testing.T) {
	c, err := newLineTransport(io.NopCloser(strings.NewReader(ping)), io.Discard, "", &deferred{}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if m, err := c.Read(t.Context()); err != nil {
		t.Errorf("Read() = %v, %v", m, err)
	}
}

// TestCloseEndsRead closes a connection while a read waits.
func TestCloseEndsRead(t *testing.T) {
	in, feed := io.Pipe()
	defer feed.Close()
	c, err := newLineTransport(in, io.Discard, "", &deferred{}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error)
	go func() { // ends with Close
		_, err := c.Read(t.Context())
		read <- err
	}()
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if err := <-read; !errors.Is(err, io.EOF) {
		t.Errorf("Read() = %v, want EOF", err)
	}
}

// TestCloseEndsWrite closes a connection whose client does not read.
func TestCloseEndsWrite(t *testing.T) {
	in, feed := io.Pipe()
	defer feed.Close()
	unread, out := io.Pipe()
	defer unread.Close()
	c, err := newLineTransport(in, out, "", &deferred{}).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error)
	go func() { // ends with Close
		id, err := jsonrpc.MakeID("1")
		wrote <- errors.Join(err, c.Write(t.Context(), &jsonrpc.Response{ID: id, Result: []byte("{}")}))
	}()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-wrote; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write() = %v, want %v", err, io.ErrClosedPipe)
	}
}

// TestWaitingAnswersAreForgotten has two answers wait behind one that the client does not read:
// one is given up, and one ends with the connection. Their long parts must not stay.
func TestWaitingAnswersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, feed := io.Pipe()
		defer feed.Close()
		unread, out := io.Pipe()
		defer unread.Close()
		var parts deferred
		c, err := newLineTransport(in, out, "", &parts).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id, err := jsonrpc.MakeID("1")
		if err != nil {
			t.Fatal(err)
		}
		write := func(ctx context.Context, marks ...[]byte) <-chan error {
			wrote := make(chan error, 1)
			result := slices.Concat([]byte("["), bytes.Join(append(marks, []byte("1")), []byte(",")), []byte("]"))
			go func() { wrote <- c.Write(ctx, &jsonrpc.Response{ID: id, Result: result}) }() // ends with Close
			synctest.Wait()
			return wrote
		}
		mark := func() []byte { return parts.add([]byte("long"), asText) }
		first := write(t.Context())
		ctx, giveUp := context.WithCancel(t.Context())
		second, third := write(ctx, mark(), mark()), write(t.Context(), mark())
		giveUp()
		if err := <-second; !errors.Is(err, lines.ErrGivenUp) {
			t.Errorf("Write() = %v, want %v", err, lines.ErrGivenUp)
		}
		if err := errors.Join(unread.Close(), c.Close()); err != nil {
			t.Error(err)
		}
		<-first
		if err := <-third; err == nil {
			t.Error("the third answer was written to a closed connection")
		}
		if !parts.none() {
			t.Error("a part is kept that no message has")
		}
	})
}

// TestUnreadAnswersEndTheWait closes the input of a client that does not read its answers.
func TestUnreadAnswersEndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`
		unread, out := io.Pipe()
		c, err := newLineTransport(io.NopCloser(strings.NewReader(call+"\n")), out, "", &deferred{}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		wrote := make(chan error)
		go func() { // ends when unread is closed
			id, err := jsonrpc.MakeID(1.0)
			wrote <- errors.Join(err, c.Write(t.Context(), &jsonrpc.Response{ID: id, Result: []byte("{}")}))
		}()
		if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("Read() = %v, want EOF although the answer is unread", err)
		}
		if err := errors.Join(unread.Close(), c.Close()); err != nil {
			t.Error(err)
		}
		<-wrote
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{ping, "[", `{"jsonrpc":"2.0","id":{},"method":1}`, "\xff", "null", `{"jsonrpc":"2.0","result":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		message, code, err := decode(data)
		if (err == nil) != (message != nil) || (err == nil) != (code == 0) {
			t.Errorf("decode(%q) = %v, %d, %v", data, message, code, err)
		}
	})
}
