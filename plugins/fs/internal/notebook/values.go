package notebook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
)

// maxDepth is how deep values may be nested.
const maxDepth = 100

// values reads the values of a JSON text one after the other.
type values struct{ decoder *json.Decoder }

func newValues(r io.Reader) *values { return &values{json.NewDecoder(r)} }

// next returns the next token.
func (v *values) next() (json.Token, error) {
	token, err := v.decoder.Token()
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("its JSON ends at byte %d, in the middle of a value", v.decoder.InputOffset())
	case err != nil:
		return nil, fmt.Errorf("its JSON is wrong at byte %d: %w", v.decoder.InputOffset(), err)
	}
	return token, nil
}

// end expects the end of the text.
func (v *values) end() error {
	switch _, err := v.decoder.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("its JSON is wrong at byte %d: %w", v.decoder.InputOffset(), err)
	}
	return fmt.Errorf("its JSON has more than one value")
}

// fields reads an object. visit reads the value of each field.
func (v *values) fields(where string, visit func(name string) error) error {
	token, err := v.next()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		return mistyped(where, token, "an object")
	}
	for v.decoder.More() {
		name, err := v.next()
		if err != nil {
			return err
		}
		text, _ := name.(string) // the decoder checks that
		if err := visit(text); err != nil {
			return err
		}
	}
	_, err = v.next()
	return err
}

// items reads a list. visit reads each item.
func (v *values) items(where string, visit func(i int) error) error {
	token, err := v.next()
	if err != nil {
		return err
	}
	if token != json.Delim('[') {
		return mistyped(where, token, "a list")
	}
	return v.rest(visit)
}

// rest reads a list after its bracket.
func (v *values) rest(visit func(i int) error) error {
	for i := 0; v.decoder.More(); i++ {
		if err := visit(i); err != nil {
			return err
		}
	}
	_, err := v.next()
	return err
}

// text reads a text: a string, or a list of strings that are its parts. It returns most bytes
// of the text at most, and the length of the whole text.
func (v *values) text(where string, most int) (text string, length int, err error) {
	var b strings.Builder
	add := func(token json.Token, where string) error {
		part, ok := token.(string)
		if !ok {
			return mistyped(where, token, "a string")
		}
		if b.Len() == length { // nothing was cut
			b.WriteString(display.Head(part, most-length))
		}
		length += len(part)
		return nil
	}
	token, err := v.next()
	switch {
	case err != nil:
		return "", 0, err
	case token == nil:
		return "", 0, nil
	case token != json.Delim('['):
		err = add(token, where)
		return b.String(), length, err
	}
	err = v.rest(func(i int) error {
		token, err := v.next()
		if err != nil {
			return err
		}
		return add(token, fmt.Sprintf("%s[%d]", where, i))
	})
	return b.String(), length, err
}

// number reads a whole number; null is 0.
func (v *values) number(where string) (int, error) {
	token, err := v.next()
	if err != nil || token == nil {
		return 0, err
	}
	n, ok := token.(float64)
	if !ok {
		return 0, mistyped(where, token, "a number")
	}
	return int(min(max(n, 0), 1<<31)), nil
}

// size reads a value and returns its size in bytes: that of a text, or else of its JSON.
// base64 means that a text is in base64.
func (v *values) size(base64 bool) (int, error) {
	length, object, start := 0, false, int64(0)
	for depth := 0; ; {
		token, err := v.next()
		if err != nil {
			return 0, err
		}
		switch token := token.(type) {
		case json.Delim:
			if depth == 0 {
				object, start = token == '{', v.decoder.InputOffset()-1
			}
			if token == '{' || token == '[' {
				depth++
			} else {
				depth--
			}
		case string:
			length += len(token)
			if base64 {
				length -= strings.Count(token, "\n") + strings.Count(token, "=")
			}
		default:
			length += len(fmt.Sprint(token))
		}
		if depth > maxDepth {
			return 0, fmt.Errorf("its JSON is nested more than %d deep at byte %d", maxDepth, v.decoder.InputOffset())
		}
		if depth == 0 {
			break
		}
	}
	switch {
	case object:
		return int(v.decoder.InputOffset() - start), nil
	case base64:
		return length * 3 / 4, nil
	default:
		return length, nil
	}
}

// skip reads a value that is not needed.
func (v *values) skip() error {
	_, err := v.size(false)
	return err
}

// mistyped returns the error for a value of another type than expected.
func mistyped(where string, token json.Token, want string) error {
	found := "a string"
	switch token := token.(type) {
	case nil:
		found = "null"
	case bool:
		found = "a boolean"
	case float64:
		found = "a number"
	case json.Delim:
		found = "a list"
		if token == '{' {
			found = "an object"
		}
	}
	return fmt.Errorf("%s is %s, expected %s", where, found, want)
}
