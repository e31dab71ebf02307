package schema

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of what is read.
const (
	// MaxArguments is the largest text of a call's arguments.
	MaxArguments = 1 * tool.MiB
	// MaxDepth is how deep objects and arrays may be nested.
	MaxDepth = 64
	// maxValues is how many values one text may hold, that of arguments of
	// [MaxArguments] at most: each takes far more memory than its text.
	maxValues = int(MaxArguments) / 2
)

// Read reads the arguments of a call as strict JSON: one value, valid UTF-8,
// no name twice in an object, no NaN, at most [MaxArguments] bytes and
// [MaxDepth] levels. Empty arguments, and null, are
// an empty object. Objects become
// map[string]any, arrays []any, and numbers [json.Number], which keeps their
// text. The error, of code [tool.InvalidArgument], says where the text is
// wrong and what was expected there.
func Read(raw []byte) (any, *tool.Error) {
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]any{}, nil
	}
	if len(raw) > int(MaxArguments) {
		return nil, tool.Errorf(tool.InvalidArgument, "arguments have %d bytes, more than the %d that are allowed",
			len(raw), int(MaxArguments)).
			WithHint("send less in one call; name a file instead of its contents")
	}
	value, err := parse(raw)
	if err != nil {
		return nil, tool.Errorf(tool.InvalidArgument, "arguments are not valid JSON: %s", err.Error()).
			WithHint("send the arguments again as one complete JSON object")
	}
	return value, nil
}

// parse reads one JSON value. The error is a [*syntaxError].
func parse(text []byte) (any, error) {
	r := reader{text: text}
	value, err := r.document()
	if err != nil {
		return nil, err
	}
	return value, nil
}

// syntaxError says where a text is not JSON.
type syntaxError struct {
	line, column int // of characters, from 1
	offset       int // of bytes, from 0
	message      string
}

// Error implements error.
func (e *syntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d (byte %d): %s", e.line, e.column, e.offset, e.message)
}

// reader reads JSON (RFC 8259) strictly. After an error it is spent.
type reader struct {
	text   []byte
	pos    int
	depth  int
	values int
}

func (r *reader) document() (any, error) {
	value, err := r.value()
	if err != nil {
		return nil, err
	}
	if r.space(); r.pos < len(r.text) {
		return nil, r.expected("nothing more after the value")
	}
	return value, nil
}

// begin passes white space and counts the value that follows it.
func (r *reader) begin() error {
	r.space()
	if r.pos == len(r.text) {
		return r.expected("a JSON value")
	}
	if r.values++; r.values > maxValues {
		return r.errorAt(r.pos, fmt.Sprintf("more than %d values", maxValues))
	}
	return nil
}

func (r *reader) value() (any, error) {
	if err := r.begin(); err != nil {
		return nil, err
	}
	switch c := r.text[r.pos]; {
	case c == '{':
		return r.object()
	case c == '[':
		return r.array()
	case c == '"':
		return r.str()
	case c == '-' || isDigit(c):
		return r.number()
	case r.takeWord("true"):
		return true, nil
	case r.takeWord("false"):
		return false, nil
	case r.takeWord("null"):
		return nil, nil
	default:
		return nil, r.expected("a JSON value")
	}
}

func (r *reader) object() (any, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	object := make(map[string]any)
	if r.take('}') {
		r.depth--
		return object, nil
	}
	for {
		r.space()
		start := r.pos
		if r.pos == len(r.text) || r.text[r.pos] != '"' {
			return nil, r.expected("a property name in double quotes")
		}
		name, err := r.str()
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, r.errorAt(start, fmt.Sprintf("property %s stands twice in one object", quote(name)))
		}
		if !r.take(':') {
			return nil, r.expected("':'")
		}
		if object[name], err = r.value(); err != nil {
			return nil, err
		}
		switch {
		case r.take(','):
		case r.take('}'):
			r.depth--
			return object, nil
		default:
			return nil, r.expected("',' or '}'")
		}
	}
}

func (r *reader) array() (any, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	array := []any{}
	if r.take(']') {
		r.depth--
		return array, nil
	}
	for {
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		array = append(array, value)
		switch {
		case r.take(','):
		case r.take(']'):
			r.depth--
			return array, nil
		default:
			return nil, r.expected("',' or ']'")
		}
	}
}

// enter passes the bracket that opens an object or array.
func (r *reader) enter() error {
	if r.depth++; r.depth > MaxDepth {
		return r.errorAt(r.pos, fmt.Sprintf("nested deeper than %d levels", MaxDepth))
	}
	r.pos++
	return nil
}

// take passes white space and then c, and reports whether c was there.
func (r *reader) take(c byte) bool {
	r.space()
	if r.pos == len(r.text) || r.text[r.pos] != c {
		return false
	}
	r.pos++
	return true
}

// takeWord passes a word, and reports whether it was there.
func (r *reader) takeWord(word string) bool {
	if !bytes.HasPrefix(r.text[r.pos:], []byte(word)) {
		return false
	}
	r.pos += len(word)
	return true
}

func (r *reader) space() {
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// expected says what should have stood where the reader stands.
func (r *reader) expected(what string) error {
	if r.pos >= len(r.text) {
		return r.errorAt(len(r.text), "expected "+what+", got the end of the text")
	}
	char, size := utf8.DecodeRune(r.text[r.pos:])
	if char == utf8.RuneError && size == 1 {
		return r.errorAt(r.pos, "expected "+what+", got a byte that is not UTF-8")
	}
	return r.errorAt(r.pos, "expected "+what+", got "+strconv.QuoteRune(char))
}

func (r *reader) errorAt(offset int, message string) error {
	before := string(r.text[:offset])
	lineStart := strings.LastIndexByte(before, '\n') + 1
	return &syntaxError{
		line:    strings.Count(before, "\n") + 1,
		column:  utf8.RuneCountInString(before[lineStart:]) + 1,
		offset:  offset,
		message: message,
	}
}
