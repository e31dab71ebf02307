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
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of a body.
const (
	maxBody = 2 * tool.MiB
	// maxBodyDepth is how deep a body may be nested. The pipeline allows less
	// of the arguments in it, and tells a model.
	maxBodyDepth = 100
	// maxBodyTime is how long a body may take to arrive.
	maxBodyTime = 30 * time.Second
)

// fields are the members that a body may have, and where their values go.
type fields map[string]any

// countedBody is the body of a request whose credential has to count at the end of the
// body, too: it may be revoked while the body arrives.
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

// readBody reads the body of a request, a JSON object, into fields. No body is
// an empty object. The error is a [*Problem].
func readBody(w http.ResponseWriter, r *http.Request, into fields) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(maxBodyTime)) // tests have none
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(maxBody)))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return tooLarge().problem("the body has more than the %s that are allowed", maxBody).
				hint("send less in one request; name a file instead of its contents")
		}
		if errors.Is(err, errRevoked) {
			return unauthorized().problem("%v", err)
		}
		return badRequest().problem("the body did not arrive: %v", err)
	}
	if len(text) == 0 {
		return nil
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return wrongContent().problem("the body is %q, expected application/json", excerpt.Printable(r.Header.Get("Content-Type"), maxShown)).
			hint("send JSON, with the header Content-Type: application/json")
	}
	return readJSON(text, into)
}

// readJSON reads a text that is one JSON object. The error is a [*Problem].
func readJSON(text []byte, into fields) error {
	if !utf8.Valid(text) {
		return badRequest().problem("the body is not UTF-8")
	}
	if depth := depthOf(text); depth > maxBodyDepth {
		return badRequest().problem("the body is nested %d deep, more than the %d that are allowed", depth, maxBodyDepth)
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
			return badRequest().problem("the body has two members %q", name)
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

// set puts a value where it belongs.
func (f fields) set(name string, value json.RawMessage) error {
	into, ok := f[name]
	if !ok {
		known := slices.Sorted(maps.Keys(f))
		if len(known) == 0 {
			return badRequest().problem("the body has a member %q, expected none", excerpt.Printable(name, maxShown))
		}
		return badRequest().problem("the body has a member %q, which is not known here", excerpt.Printable(name, maxShown)).
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
		return badRequest().problem("%s is %s, expected %s", name, excerpt.Printable(string(value), maxShown), wanted(into))
	}
	return nil
}

// wanted says in words what a member must be.
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

// notJSON says where a text is not the JSON that is expected.
func notJSON(text []byte, d *json.Decoder, err error, expected string) error {
	at := d.InputOffset()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = syntax.Offset
	}
	before := text[:min(max(at, 0), int64(len(text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return badRequest().problem("the body is wrong at line %d, column %d: expected %s", line, max(column, 1), expected)
}

// depthOf returns how deep a text that may be JSON is nested.
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
