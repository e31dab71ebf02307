package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxShown bounds the part of a request that an error repeats, in bytes.
	maxShown = 100
	// maxWait bounds how long a request may wait for something to happen.
	maxWait = 10 * time.Minute
	// maxBody bounds a body.
	maxBody = 2 * tool.MiB
	// maxBodyDepth bounds the nesting of a body. The pipeline's bound for arguments is lower,
	// with an error for the model.
	maxBodyDepth = 100
	// maxBodyTime bounds how long a body may take to arrive.
	maxBodyTime = 30 * time.Second
)

// query reads the query parameters of a request. It keeps the first mistake.
type query struct {
	values  url.Values
	mistake *Problem
}

// readQuery parses the parameters. It refuses an unknown parameter, and one that is
// given twice.
func readQuery(r *http.Request, known ...string) *query {
	q := &query{}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		q.mistake = badRequest.problem("the query cannot be parsed: %v", err)
		return q
	}
	q.values = values
	for name, list := range values {
		switch {
		case len(known) == 0:
			q.fail("unknown parameter %q: this path has no parameters", excerpt.Printable(name, maxShown))
		case !slices.Contains(known, name):
			q.fail("unknown parameter %q", excerpt.Printable(name, maxShown))
			q.mistake.Hint = "parameters are " + strings.Join(known, ", ")
		case len(list) > 1:
			q.fail("the parameter %s is given twice", name)
		}
	}
	return q
}

func (q *query) fail(format string, args ...any) {
	if q.mistake == nil {
		q.mistake = badRequest.problem(format, args...)
	}
}

// err returns the first mistake, or nil.
func (q *query) err() error {
	if q.mistake == nil {
		return nil
	}
	return q.mistake
}

func (q *query) text(name string) string { return q.values.Get(name) }

// list returns the values between commas.
func (q *query) list(name string) []string {
	if !q.values.Has(name) {
		return nil
	}
	return strings.Split(q.values.Get(name), ",")
}

// number returns a non-negative number; 0 if the parameter is missing.
func (q *query) number(name string) int64 {
	text := q.values.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		q.fail("%s is %q, expected a number", name, excerpt.Printable(text, maxShown))
		return 0
	}
	return n
}

// time returns a time; the zero time if the parameter is missing.
func (q *query) time(name string) time.Time {
	text := q.values.Get(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.fail("%s is %q, expected a time such as 2026-01-31T15:04:05Z", name, excerpt.Printable(text, maxShown))
	}
	return t
}

// wait returns the parameter wait, at most [maxWait].
func (q *query) wait() time.Duration {
	text := q.values.Get("wait")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if seconds, atoiErr := strconv.Atoi(text); atoiErr == nil {
		d, err = time.Duration(min(seconds, int(maxWait/time.Second)))*time.Second, nil
	}
	if err != nil || d < 0 {
		q.fail("wait is %q, expected a duration such as 30s", excerpt.Printable(text, maxShown))
		return 0
	}
	return min(d, maxWait)
}

// prefer holds the Prefer headers of a request (RFC 7240): how long its answer may take.
type prefer struct {
	async bool // an answer at once
	waits bool // an answer within wait
	wait  time.Duration
	// asks asks for an answer as soon as the call has waited for a person for patience.
	asks     bool
	patience time.Duration
}

// readPrefer reads the Prefer headers. "A server that does not recognize or is
// unable to comply with particular preference tokens ... MUST ignore those
// tokens" (RFC 7240, section 2). A known token with an invalid value is a mistake.
func readPrefer(h http.Header) (prefer, error) {
	var p prefer
	for _, header := range h.Values("Prefer") {
		for preference := range strings.SplitSeq(header, ",") {
			token, _, _ := strings.Cut(preference, ";") // parameters
			name, value, _ := strings.Cut(token, "=")
			value = strings.Trim(strings.TrimSpace(value), `"`)
			var err error
			switch name = strings.ToLower(strings.TrimSpace(name)); name {
			case "respond-async":
				p.async = true
			case "wait":
				err = first(name, value, &p.waits, &p.wait)
			case "approval-wait": // ours
				err = first(name, value, &p.asks, &p.patience)
			}
			if err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// first reads a number of seconds, unless an earlier header gave it: "the first
// instance ... SHALL be used" (section 2).
func first(name, value string, given *bool, wait *time.Duration) error {
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return badRequest.problem("the header Prefer has %s=%s, expected a number of seconds", name, excerpt.Printable(value, maxShown))
	}
	if !*given {
		*given, *wait = true, min(time.Duration(seconds)*time.Second, maxWait)
	}
	return nil
}

// applied tells the client which preference the host applied.
func (p prefer) applied(w http.ResponseWriter) {
	switch {
	case p.async:
		w.Header().Set("Preference-Applied", "respond-async")
	case p.waits:
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(p.wait/time.Second)))
	case p.asks:
		w.Header().Set("Preference-Applied", "approval-wait="+strconv.Itoa(int(p.patience/time.Second)))
	}
}

// countedBody is the body of a request. At its end the credential must still be valid:
// it may be revoked while the body arrives.
type countedBody struct {
	io.ReadCloser

	of *request
}

// Read implements [io.Reader].
func (b countedBody) Read(p []byte) (n int, err error) {
	if n, err = b.ReadCloser.Read(p); errors.Is(err, io.EOF) && !b.of.valid() {
		err = errRevoked
	}
	return n, err
}

// fields are the members that a body may have, and where their values go.
type fields map[string]any

// readBody reads the body of the request into fields; see [readBody].
func (r *request) readBody(into fields) error { return readBody(r.w, r.Request, into) }

// readBody reads the body of a request, a JSON object, into fields. An empty body is an
// empty object. The error is a [*Problem].
func readBody(w http.ResponseWriter, r *http.Request, into fields) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(maxBodyTime)) // tests have none
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(maxBody)))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return tooLarge.problem("the body is larger than %s", maxBody).
				hint("send less in one request; name a file instead of its contents")
		}
		if errors.Is(err, errRevoked) {
			return unauthorized.problem("%v", err)
		}
		return badRequest.problem("the body did not arrive: %v", err)
	}
	if len(text) == 0 {
		return nil
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return wrongContent.problem("the body is %q, expected application/json", excerpt.Printable(r.Header.Get("Content-Type"), maxShown)).
			hint("send JSON, with the header Content-Type: application/json")
	}
	return readJSON(text, into)
}

// readJSON reads a text that is one JSON object. The error is a [*Problem].
func readJSON(text []byte, into fields) error {
	if !utf8.Valid(text) {
		return badRequest.problem("the body is not UTF-8")
	}
	if depth := depthOf(text); depth > maxBodyDepth {
		return badRequest.problem("the body is nested %d deep, more than %d", depth, maxBodyDepth)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return notJSON(text, d, err, "a JSON object")
	}
	seen := make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return notJSON(text, d, err, "the name of a member")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return notJSON(text, d, err, "a value")
		}
		if seen[name] {
			return badRequest.problem("the body has two members %q", name)
		}
		seen[name] = true
		if err := into.set(name, value); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the end of the object
		return notJSON(text, d, err, "the end of the object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return notJSON(text, d, nil, "nothing more after the object")
	}
	return nil
}

// set stores the value of a member.
func (f fields) set(name string, value json.RawMessage) error {
	into, ok := f[name]
	if !ok {
		known := slices.Sorted(maps.Keys(f))
		if len(known) == 0 {
			return badRequest.problem("unknown member %q: the body has no members", excerpt.Printable(name, maxShown))
		}
		return badRequest.problem("unknown member %q in the body", excerpt.Printable(name, maxShown)).
			hint("members are %s", strings.Join(known, ", "))
	}
	if raw, ok := into.(*json.RawMessage); ok {
		*raw = value
		return nil
	}
	err := json.Unmarshal(value, into)
	if nested, ok := errors.AsType[*Problem](err); ok {
		return nested
	}
	if err != nil || string(value) == "null" {
		return badRequest.problem("%s is %s, expected %s", name, excerpt.Printable(string(value), maxShown), wanted(into))
	}
	return nil
}

// wanted describes the values of a member.
func wanted(into any) string {
	switch into.(type) {
	case *string, **string:
		return "a string"
	case *bool:
		return "true or false"
	case **int64:
		return "a whole number"
	case *[]string:
		return "a list of strings"
	case json.Unmarshaler:
		return "a JSON object"
	}
	return fmt.Sprintf("a %T", into)
}

// notJSON says where a text is not the expected JSON.
func notJSON(text []byte, d *json.Decoder, err error, expected string) error {
	at := d.InputOffset()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = syntax.Offset
	}
	before := text[:min(max(at, 0), int64(len(text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return badRequest.problem("the body is wrong at line %d, column %d: expected %s", line, max(column, 1), expected)
}

// depthOf returns how deep a text is nested that may be JSON.
func depthOf(text []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
