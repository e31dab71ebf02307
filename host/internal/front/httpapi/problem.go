package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// problemType is the media type of a [Problem].
const problemType = "application/problem+json"

// Problem is an error of the interface itself, in the form of RFC 9457. That a
// call of a tool failed is none: that is the call's result.
type Problem struct { //nolint:errname // it is what RFC 9457 calls it
	// Type names the kind of problem for programs: "urn:toolhost:problem:" and
	// a word.
	Type string `json:"type"`
	// Title says the same for people.
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says what is wrong with this request.
	Detail string `json:"detail"`
	// Hint says what to do.
	Hint string `json:"hint,omitempty"`

	retryAfter time.Duration
	allow      string // the methods of a path
	cause      error  // for the log
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// Unwrap returns what is for the log only, or nil.
func (p *Problem) Unwrap() error { return p.cause }

// kind is a kind of problem.
type kind struct {
	status      int
	word, title string
}

// problem returns a problem with a detail.
func (k kind) problem(format string, args ...any) *Problem {
	return &Problem{
		Type: "urn:toolhost:problem:" + k.word, Title: k.title, Status: k.status, Detail: fmt.Sprintf(format, args...),
	}
}

// hint returns the problem with advice.
func (p *Problem) hint(format string, args ...any) *Problem {
	p.Hint = fmt.Sprintf(format, args...)
	return p
}

// The kinds of problems.
func badRequest() kind { return kind{http.StatusBadRequest, "request", "Invalid request"} }

func unauthorized() kind { return kind{http.StatusUnauthorized, "credential", "No valid credential"} }

func forbidden() kind { return kind{http.StatusForbidden, "role", "Role required"} }

func elsewhere() kind   { return kind{http.StatusForbidden, "account", "Wrong account"} }
func misdirected() kind { return kind{http.StatusForbidden, "origin", "Origin not allowed"} }
func notFound() kind    { return kind{http.StatusNotFound, "not-found", "Not found"} }
func wrongMethod() kind {
	return kind{http.StatusMethodNotAllowed, "method", "Method not allowed"}
}

func conflict() kind {
	return kind{http.StatusConflict, "conflict", "The resource changed or was already decided"}
}

func tooLarge() kind {
	return kind{http.StatusRequestEntityTooLarge, "too-large", "Request too large"}
}

func wrongContent() kind {
	return kind{http.StatusUnsupportedMediaType, "content-type", "Unsupported content type"}
}

func refused() kind {
	return kind{http.StatusUnprocessableEntity, "refused", "Refused"}
}

func tooMany() kind {
	return kind{http.StatusTooManyRequests, "too-many", "Too many requests"}
}

func internal() kind {
	return kind{http.StatusInternalServerError, "internal", "Internal error"}
}

func unavailable() kind {
	return kind{http.StatusServiceUnavailable, "unavailable", "Unavailable"}
}

// problemOf returns an error as a problem. What is for nobody but the log is
// kept as its cause.
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
		return badRequest()
	case tool.NotFound:
		return notFound()
	case tool.PermissionDenied:
		return forbidden()
	case tool.Conflict, tool.Rejected, tool.PendingApproval, tool.Canceled:
		return conflict()
	case tool.RateLimited:
		return tooMany()
	case tool.Timeout, tool.Unavailable, tool.PluginCrashed, tool.ResourceExhausted:
		return unavailable()
	case tool.OutputInvalid, tool.UnknownOutcome, tool.Failed, tool.Internal:
		return internal()
	}
	return internal()
}

// write answers with the problem.
func (p *Problem) write(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", problemType)
	if p.allow != "" {
		header.Set("Allow", p.allow)
	}
	if p.Status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="toolhost"`)
	}
	if p.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // nobody is left to tell
}
