package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of JSON texts.
const (
	// MaxArguments is the largest text of a call's arguments.
	MaxArguments = 1 * tool.MiB
	// MaxDepth is how deep objects and arrays may be nested.
	MaxDepth = 64
	// maxValues is how many values one text may hold. Each takes far more memory
	// than its text. Arguments of [MaxArguments] cannot hold more.
	maxValues = int(MaxArguments) / 2
	// maxNumber is the longest text of a number, and maxExponent the largest
	// exponent: exact arithmetic on larger ones costs more than a call should.
	maxNumber   = 256
	maxExponent = 999
)

// Read reads the arguments of a call as strict JSON: one value, valid UTF-8, no
// duplicate names in an object, at most [MaxArguments] bytes and [MaxDepth] levels.
// Empty arguments and null are an empty object. Objects become map[string]any,
// arrays []any, and numbers [json.Number], which keeps their text. The error has
// code [tool.InvalidArgument] and says where the text is wrong.
func Read(raw []byte) (any, *tool.Error) {
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]any{}, nil
	}
	if len(raw) > int(MaxArguments) {
		return nil, tool.Errorf(tool.InvalidArgument, "the arguments have %d bytes, more than the limit of %d", len(raw), int(MaxArguments)).
			WithHint("send less in one call; name a file instead of its contents")
	}
	value, err := parse(raw, 0)
	if err != nil {
		return nil, tool.Errorf(tool.InvalidArgument, "arguments are not valid JSON: %s", err.Error()).
			WithHint("send the arguments again as one complete JSON object")
	}
	return value, nil
}

// ReadText reads a JSON text that is not the arguments of a call, and that is nested in depth other
// objects, by the rules of [Read] except for its size, which the caller bounds.
func ReadText(text []byte, depth int) (any, error) { return parse(text, depth) }

// parse reads one JSON value that is nested in depth others. Package encoding/json
// reads it; parse also refuses what encoding/json accepts or repairs: text that is not
// UTF-8, half a surrogate pair, duplicate names, and numbers that are too large to
// compute with.
func parse(text []byte, depth int) (any, error) {
	if n := validPrefix(text); n < len(text) {
		return nil, errorAt(text, n, "the text is not UTF-8")
	}
	names, err := measure(text, depth)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil || len(bytes.TrimLeft(text[decoder.InputOffset():], " \t\r\n")) > 0 {
		return nil, syntaxError(text)
	}
	if i := halfPair(text); i >= 0 {
		return nil, errorAt(text, i, "half of a surrogate pair")
	}
	kept, err := check(value)
	if err == nil && kept < names {
		err = duplicate(text)
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// measure counts the names in a text, valid JSON or not, and refuses what would take
// too much memory or a deep stack.
func measure(text []byte, depth int) (names int, err error) {
	values := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case ':':
			names++
		case '[', '{':
			values++
			if depth++; depth > MaxDepth {
				return 0, errorAt(text, i, "nested deeper than %d levels", MaxDepth)
			}
		case ']', '}':
			depth--
		case ',':
			values++
		}
		if values > maxValues {
			return 0, errorAt(text, i, "more than %d values", maxValues)
		}
	}
	return names, nil
}

// check returns the number of names in a value. It refuses numbers that programs cannot
// represent, or that are expensive to compute with.
func check(value any) (names int, err error) {
	switch value := value.(type) {
	case map[string]any:
		names = len(value)
		for _, item := range value {
			below, err := check(item)
			if err != nil {
				return 0, err
			}
			names += below
		}
	case []any:
		for _, item := range value {
			below, err := check(item)
			if err != nil {
				return 0, err
			}
			names += below
		}
	case json.Number:
		return 0, checkNumber(value.String())
	}
	return names, nil
}

// duplicate names the first duplicate property of a text that has one.
func duplicate(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var seen []map[string]bool // of the objects and arrays around the next token; nil for arrays
	isName := false
	for {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		inObject := len(seen) > 0 && seen[len(seen)-1] != nil
		switch token := token.(type) {
		case json.Delim:
			switch token {
			case '{':
				seen = append(seen, make(map[string]bool))
			case '[':
				seen = append(seen, nil)
			default:
				seen = seen[:len(seen)-1]
			}
			isName = true
			continue
		case string:
			if inObject && isName {
				names := seen[len(seen)-1]
				if names[token] {
					return errorAt(text, int(decoder.InputOffset()), "duplicate property %s", quote(token))
				}
				names[token], isName = true, false
				continue
			}
		}
		isName = true
	}
}

// syntaxError says why a text is not JSON.
func syntaxError(text []byte) error {
	var value json.RawMessage
	err := json.Unmarshal(text, &value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at := int(syntax.Offset) - 1 // the offset includes the wrong character
		if message := syntax.Error(); !endsEarly(text, at, message) {
			return errorAt(text, at, "%s", message)
		}
		return errorAt(text, len(text), "unexpected end of JSON input")
	}
	return err
}

// endsEarly reports whether a syntax error is the end of the text. Within an escape or
// a number, encoding/json reports the end as a space that is not there.
func endsEarly(text []byte, at int, message string) bool {
	return strings.HasPrefix(message, "unexpected end") || strings.HasPrefix(message, "invalid character ' '") && text[at] != ' '
}

// errorAt adds a place to an error; offset counts bytes from 0.
func errorAt(text []byte, offset int, format string, args ...any) error {
	before := text[:offset]
	line := bytes.LastIndexByte(before, '\n') + 1
	return fmt.Errorf("line %d, column %d (byte %d): %s", bytes.Count(before, []byte("\n"))+1,
		utf8.RuneCount(before[line:])+1, offset, fmt.Sprintf(format, args...))
}

func checkNumber(text string) error {
	if len(text) > maxNumber {
		return fmt.Errorf("the number %s… has more than %d characters", text[:16], maxNumber)
	}
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return nil
	}
	if n, err := strconv.Atoi(strings.TrimLeft(text[i+1:], "+-")); err != nil || n > maxExponent {
		return fmt.Errorf("the exponent of %s is larger than %d", text, maxExponent)
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return fmt.Errorf("the number %s is larger than %.2g", text, math.MaxFloat64)
	}
	return nil
}

// halfPair returns the offset of an escape that is half of a surrogate pair, or -1.
// The text is valid JSON.
func halfPair(text []byte) int {
	for i := 0; ; {
		next := bytes.IndexByte(text[i:], '\\')
		if next < 0 {
			return -1
		}
		i += next
		first, size := escape(text[i:])
		i += size
		if !utf16.IsSurrogate(first) {
			continue
		}
		second, more := escape(text[i:])
		if utf16.DecodeRune(first, second) == utf8.RuneError {
			return i - size
		}
		i += more
	}
}

// escape returns the character of a \u escape, or 0 for anything else, and the size
// of the escape.
func escape(text []byte) (char rune, size int) {
	if len(text) < 2 || text[0] != '\\' || text[1] != 'u' {
		return 0, min(2, len(text))
	}
	n, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // the text is valid
	return rune(n), 6
}

// validPrefix returns the number of bytes before the first that is not UTF-8.
func validPrefix(text []byte) int {
	if utf8.Valid(text) {
		return len(text)
	}
	n := 0
	for {
		char, size := utf8.DecodeRune(text[n:])
		if char == utf8.RuneError && size <= 1 {
			return n
		}
		n += size
	}
}
