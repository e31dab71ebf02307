package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
)

const (
	// firstStateless is the first revision without sessions. Revisions are dates and compare
	// as text.
	firstStateless = "2026-07-28"

	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerSession = "Mcp-Session-Id"

	// maxBodyTime is how long a message may take to arrive.
	maxBodyTime = 30 * time.Second
	// maxWriteTime is how long a client may take to read a response.
	maxWriteTime = 30 * time.Second
)

// endpoint serves MCP over HTTP at one address for all revisions. The SDK has separate
// handlers for revisions with and without sessions.
type endpoint struct {
	sessions, stateless http.Handler
}

func newEndpoint(server *mcp.Server, logger logHandler) endpoint {
	handler := func(stateless bool) http.Handler {
		return sdkauth.RequireBearerToken(tellCaller, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(
			mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
				Stateless:                  stateless,
				Logger:                     logger.slog(),
				MaxRequestBodyBytes:        maxLine,
				DisableLocalhostProtection: true, // the caller of ServeHTTP has checked the Host header
			}))
	}
	return endpoint{sessions: handler(false), stateless: handler(true)}
}

// exchange is one HTTP request, as its calls see it.
type exchange struct {
	ctx    context.Context //nolint:containedctx // the SDK's context of a call does not end with the request
	caller auth.Caller
	// stateless reports that the revision has no sessions. All calls of a process, from, then
	// form one session.
	stateless bool
	from      auth.Peer
}

// exchangeKey is the key of an [exchange] in the context of its request.
type exchangeKey struct{}

// tellCaller passes the caller of a request through the SDK, which accepts it only from its
// own middleware. The caller of [Server.ServeHTTP] has checked the credential.
func tellCaller(ctx context.Context, _ string, _ *http.Request) (*sdkauth.TokenInfo, error) {
	e, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, sdkauth.ErrInvalidToken
	}
	return &sdkauth.TokenInfo{UserID: ownerOf(e.caller), Extra: map[string]any{extraExchange: e}}, nil
}

const extraExchange = "exchange"

// exchangeOf returns the HTTP request that a message came with, or nil for another transport.
func exchangeOf(req mcp.Request) *exchange {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	e, _ := extra.TokenInfo.Extra[extraExchange].(*exchange)
	return e
}

// ServeHTTP answers one request of the streamable HTTP transport, of any revision. caller is
// the owner of the request's credential; from is the process that sent it. In a revision
// without sessions, the end of the request's context cancels its call. In a session the call
// continues, and the same call returns its result.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request, caller auth.Caller, from auth.Peer) {
	ctx, end := answering(r)
	defer end()
	e := &exchange{ctx: r.Context(), caller: caller, from: from}
	r = r.WithContext(context.WithValue(ctx, exchangeKey{}, e))
	patient := &patientWriter{ResponseWriter: w, deferred: filler{deferred: &s.deferred}}
	defer patient.finish()
	w = patient
	if r.Method == http.MethodPost && !readMessage(w, r) {
		return
	}
	session := r.Header.Get(headerSession)
	switch {
	case isStateless(r):
		e.stateless = true
		s.http.stateless.ServeHTTP(w, r)
	case session == "" && isEarly(r):
		refuse(w, http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "there is no session: send initialize first")
	case session == "":
		s.http.sessions.ServeHTTP(w, r)
	case r.Method == http.MethodDelete:
		if !s.sessions.end(session, ownerOf(caller)) {
			refuse(w, http.StatusNotFound, jsonrpc.CodeInvalidRequest, noSession)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		leave, ok := s.sessions.enter(session, ownerOf(caller))
		if !ok {
			// "When a client receives HTTP 404 in response to a request containing
			// an Mcp-Session-Id, it MUST start a new session" (MCP 2025-11-25,
			// basic/transports, "Session Management")
			refuse(w, http.StatusNotFound, jsonrpc.CodeInvalidRequest, noSession)
			return
		}
		defer leave()
		s.http.sessions.ServeHTTP(w, r)
	}
}

// answering returns a context for the SDK, which writes nothing once its context has ended.
// When the host stops, the context lasts a little longer than the request's, so that the
// client learns the outcome of its call. The caller must call end.
func answering(r *http.Request) (_ context.Context, end func()) {
	if r.Method != http.MethodPost || r.Header.Get(headerMethod) == "subscriptions/listen" {
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(r.Context(), func() {
		cause := context.Cause(r.Context())
		if !errors.Is(cause, operation.ErrStopping) {
			cancel(cause)
			return
		}
		time.AfterFunc(maxStop, func() { cancel(cause) })
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

const noSession = "there is no such session; it has ended, or timed out: initialize anew"

// isStateless reports whether a request uses a revision without sessions, according to its
// header. If the client left out the header, the revision in its message counts, and the
// handler of that revision reports the missing header.
func isStateless(r *http.Request) bool {
	if version := r.Header.Get(headerVersion); version != "" {
		return version >= firstStateless
	}
	if r.Method != http.MethodPost || r.Header.Get(headerSession) != "" {
		return false
	}
	if r.Header.Get(headerMethod) != "" {
		return true
	}
	message, ok := r.Body.(*message)
	return ok && message.version() >= firstStateless
}

// message is a request body that has been read.
type message struct {
	*bytes.Reader

	text []byte
}

// Close implements [io.Closer].
func (*message) Close() error { return nil }

// version returns the revision in the message's _meta, or "".
func (m *message) version() string {
	var fields struct {
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"` //nolint:tagliatelle // the protocol's name
		} `json:"params"`
	}
	var version string
	if json.Unmarshal(m.text, &fields) != nil || json.Unmarshal(fields.Params.Meta[mcp.MetaKeyProtocolVersion], &version) != nil {
		return ""
	}
	return version
}

// isEarly reports whether a message needs a session because it is about tools.
func isEarly(r *http.Request) bool {
	message, ok := r.Body.(*message)
	var request struct {
		Method string `json:"method"`
	}
	return ok && json.Unmarshal(message.text, &request) == nil && strings.HasPrefix(request.Method, "tools/")
}

// readMessage reads the body, which must be one message, within bounds. Otherwise it answers
// the request and returns false.
func readMessage(w http.ResponseWriter, r *http.Request) bool {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(maxBodyTime)) // test recorders do not support it
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLine))
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		refuse(w, http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest,
			fmt.Sprintf("the message is longer than %d bytes", maxLine))
		return false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, jsonrpc.CodeParseError, fmt.Sprintf("the message did not arrive: %v", err))
		return false
	}
	_ = control.SetReadDeadline(time.Time{}) // it would end the request later
	text = bytes.TrimSpace(text)
	if code, err := checkText(text); err != nil {
		refuse(w, http.StatusBadRequest, code, err.Error())
		return false
	}
	r.Body, r.ContentLength = &message{bytes.NewReader(text), text}, int64(len(text))
	return true
}

// refuse answers a request that is not a valid message.
func refuse(w http.ResponseWriter, status int, code int64, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(refusal(nil, code, why)) // the client is gone if this fails
}

// patientWriter bounds how long each write may wait for a client that does not read, and fills
// in deferred parts.
type patientWriter struct {
	http.ResponseWriter

	deferred filler
}

// Write implements [io.Writer].
func (w *patientWriter) Write(data []byte) (int, error) {
	w.extend()
	whole, err := w.deferred.fill(data)
	if err != nil {
		return 0, err
	}
	if _, err := w.ResponseWriter.Write(whole); err != nil {
		return 0, err
	}
	return len(data), nil
}

// finish writes the bytes that fill held back, since they do not begin a mark.
func (w *patientWriter) finish() {
	if len(w.deferred.held) > 0 {
		w.extend()
		_, _ = w.ResponseWriter.Write(w.deferred.held) // the client is gone if this fails
	}
}

// FlushError implements what [http.ResponseController] looks for.
func (w *patientWriter) FlushError() error {
	w.extend()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap returns the writer below, for [http.ResponseController].
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *patientWriter) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(maxWriteTime)) // test recorders do not support it
}
