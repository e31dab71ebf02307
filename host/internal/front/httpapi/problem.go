package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/sdk/tool"
)

// problemType is the media type of a [Problem].
const problemType = "application/problem+json"

// Problem is an error of the interface itself, in the form of RFC 9457. The failure of
// a tool is not a problem: it is the result of the call.
type Problem struct { //nolint:errname // the name in RFC 9457
	// Type identifies the kind of problem for programs: "urn:toolhost:problem:" and a
	// word.
	Type string `json:"type"`
	// Title describes the kind of problem for people.
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail describes what is wrong with this request.
	Detail string `json:"detail"`
	// Hint says what to do.
	Hint string `json:"hint,omitempty"`

	retryAfter time.Duration
	allow      string // the methods of a path
	challenge  string // further parameters of WWW-Authenticate
	cause      error  // for the log
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// Unwrap returns the cause, which is for the log only, or nil.
func (p *Problem) Unwrap() error { return p.cause }

// kind is a kind of problem.
type kind struct {
	status      int
	word, title string
}

// The kinds of problems.
var (
	badRequest   = kind{http.StatusBadRequest, "request", "Invalid request"}
	unauthorized = kind{http.StatusUnauthorized, "credential", "No valid credential"}
	forbidden    = kind{http.StatusForbidden, "role", "Role required"}
	elsewhere    = kind{http.StatusForbidden, "account", "Wrong account"}
	misdirected  = kind{http.StatusForbidden, "origin", "Origin not allowed"}
	notFound     = kind{http.StatusNotFound, "not-found", "Not found"}
	wrongMethod  = kind{http.StatusMethodNotAllowed, "method", "Method not allowed"}
	conflict     = kind{http.StatusConflict, "conflict", "The resource changed or was already decided"}
	tooLarge     = kind{http.StatusRequestEntityTooLarge, "too-large", "Request too large"}
	wrongContent = kind{http.StatusUnsupportedMediaType, "content-type", "Unsupported content type"}
	refused      = kind{http.StatusUnprocessableEntity, "refused", "Refused"}
	tooMany      = kind{http.StatusTooManyRequests, "too-many", "Too many requests"}
	internal     = kind{http.StatusInternalServerError, "internal", "Internal error"}
	unavailable  = kind{http.StatusServiceUnavailable, "unavailable", "Unavailable"}
)

// problem returns a problem with a detail.
func (k kind) problem(format string, args ...any) *Problem {
	return &Problem{
		Type: "urn:toolhost:problem:" + k.word, Title: k.title, Status: k.status, Detail: fmt.Sprintf(format, args...),
	}
}

// hint adds advice to the problem.
func (p *Problem) hint(format string, args ...any) *Problem {
	p.Hint = fmt.Sprintf(format, args...)
	return p
}

// problemOf converts an error. Details for the log only become the cause.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	e := tool.AsError(err)
	p := kindOf(e.Code).problem("%s", e.Message)
	p.Hint, p.cause, p.retryAfter = e.Hint, e.Unwrap(), e.RetryAfter
	return p
}

func kindOf(code tool.Code) kind {
	switch code {
	case tool.InvalidArgument:
		return badRequest
	case tool.NotFound:
		return notFound
	case tool.PermissionDenied:
		return forbidden
	case tool.Conflict, tool.Rejected, tool.PendingApproval, tool.Canceled:
		return conflict
	case tool.RateLimited:
		return tooMany
	case tool.Timeout, tool.Unavailable, tool.PluginCrashed, tool.ResourceExhausted:
		return unavailable
	case tool.OutputInvalid, tool.UnknownOutcome, tool.Failed, tool.Internal:
		return internal
	}
	return internal
}

// write sends the problem.
func (p *Problem) write(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", problemType)
	if p.allow != "" {
		header.Set("Allow", p.allow)
	}
	if p.Status == http.StatusUnauthorized {
		challenge := `Bearer realm="toolhost"`
		if p.challenge != "" {
			challenge += ", " + p.challenge
		}
		header.Set("WWW-Authenticate", challenge)
	}
	if p.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone
}

// writeWithin bounds how long the client may take to read what follows.
func (s *Server) writeWithin(w http.ResponseWriter) {
	// A recorder in a test has no deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.timing.write))
}

// write sends a value as JSON.
func (s *Server) write(w http.ResponseWriter, status int, v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	s.send(w, status, text.Bytes())
	return nil
}

func (s *Server) send(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	s.writeWithin(w)
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may be gone
}

const (
	// largeResult is the size from which results take turns, in bytes: encoding needs
	// many times their memory.
	largeResult = 64 << 10
	// maxEncoding bounds the large results that are encoded at the same time.
	maxEncoding = 2
)

// writeResult sends the outcome of a call that has ended. Only encoding takes turns: a
// client that does not read blocks no other.
func (s *Server) writeResult(w http.ResponseWriter, outcome operation.Outcome) error {
	size := len(outcome.Result.Structured)
	for _, part := range outcome.Result.Content {
		size += len(part.Data)
	}
	if size <= largeResult {
		return s.write(w, http.StatusOK, outcome)
	}
	text, err := s.encodeInTurn(outcome)
	if err != nil {
		return err
	}
	s.send(w, http.StatusOK, append(text, '\n'))
	return nil
}

func (s *Server) encodeInTurn(outcome operation.Outcome) ([]byte, error) {
	s.encoding <- struct{}{}
	defer func() { <-s.encoding }()
	return outcome.MarshalJSON()
}
