package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// inside sends requests to a handler in this process. Answers arrive piece by piece.
type inside struct{ handler http.Handler }

// RoundTrip implements [http.RoundTripper].
func (t inside) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	reader, writer := io.Pipe()
	w := &insideWriter{header: http.Header{}, body: writer, begun: make(chan struct{})}
	done := make(chan struct{})
	if r.Body == nil {
		r.Body = http.NoBody
	}
	go func() { // until the handler returns; the body's Close waits for it
		defer close(done)
		defer func() {
			w.WriteHeader(http.StatusOK)
			if failure := recover(); failure != nil { // as when a connection is cut
				_ = writer.CloseWithError(io.ErrUnexpectedEOF)
				return
			}
			_ = writer.Close()
		}()
		t.handler.ServeHTTP(w, r.WithContext(ctx))
	}()
	select {
	case <-w.begun:
	case <-r.Context().Done():
		cancel()
		_ = reader.CloseWithError(errLeft)
		<-done
		return nil, context.Cause(r.Context())
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: -1, Request: r,
		Body: &insideBody{PipeReader: reader, leave: func() {
			cancel()
			_ = reader.CloseWithError(errLeft)
			<-done
		}},
	}, nil
}

// errLeft tells a handler that its client is gone.
var errLeft = errors.New("the client has left")

// insideBody is the body of an answer.
type insideBody struct {
	*io.PipeReader

	leave func()
}

// Close ends the request, and returns when its handler has.
func (b *insideBody) Close() error {
	b.leave()
	return nil
}

// insideWriter passes an answer on.
type insideWriter struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	begun  chan struct{} // closed when sent and status are set
	sent   http.Header
	status int
}

var _ http.Flusher = (*insideWriter)(nil)

// Header implements [http.ResponseWriter].
func (w *insideWriter) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *insideWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.sent, w.status = w.header.Clone(), status
		close(w.begun)
	})
}

// Write implements [io.Writer].
func (w *insideWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if len(p) == 0 {
		return 0, nil
	}
	return w.body.Write(p)
}

// Flush implements [http.Flusher]. What is written has arrived already.
func (w *insideWriter) Flush() { w.WriteHeader(http.StatusOK) }
