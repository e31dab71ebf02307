package clientfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// bom is the mark with which some editors begin UTF-8 files.
const bom = "\ufeff"

// JSON returns an edit that sets the value at a path of object names. The file may have
// comments and trailing commas, which stay.
func JSON(path []string, value any) Edit {
	return func(old []byte) ([]byte, error) {
		body, mark := bytes.CutPrefix(old, []byte(bom))
		if text := bytes.TrimSpace(body); len(text) == 0 || string(text) == "null" {
			body = []byte("{}\n")
		}
		ended := bytes.HasSuffix(body, []byte("\n"))
		if !ended { // the parser wants an end of a last comment
			body = append(bytes.Clone(body), '\n')
		}
		text, err := setJSON(body, path, value)
		if err != nil {
			return nil, err
		}
		if !ended {
			text = bytes.TrimSuffix(text, []byte("\n"))
		}
		if mark && len(text) > 0 {
			text = append([]byte(bom), text...)
		}
		return text, nil
	}
}

func setJSON(body []byte, path []string, value any) ([]byte, error) {
	before, root, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	want, err := plain(value)
	if err != nil {
		return nil, err
	}
	expected, same, err := assign(before, path, want)
	if err != nil {
		return nil, err
	}
	if same {
		return body, nil
	}
	text, err := splice(body, root, path, value)
	if err != nil {
		return nil, err
	}
	after, _, err := parseJSON(text)
	if err != nil || !reflect.DeepEqual(after, expected) {
		return nil, errors.New("the change would alter other settings, perhaps because a name occurs twice")
	}
	return text, nil
}

// maxDepth bounds the nesting of a file: the parsers call themselves for each level.
const maxDepth = 1000

// depth returns how deep brackets and braces are nested, outside of strings and comments.
func depth(body []byte) (deepest int) {
	now := 0
	for i := 0; i < len(body); i++ {
		rest := body[i:]
		switch {
		case body[i] == '{' || body[i] == '[':
			now++
			deepest = max(deepest, now)
		case body[i] == '}' || body[i] == ']':
			now--
		case body[i] == '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(rest, []byte("//")):
			i = skipTo(body, i, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			i = skipTo(body, i+2, "*/")
		}
	}
	return deepest
}

// skipTo returns the index of the last byte of the next end, or the length of body.
func skipTo(body []byte, from int, end string) int {
	if n := bytes.Index(body[min(from, len(body)):], []byte(end)); n >= 0 {
		return from + n + len(end) - 1
	}
	return len(body)
}

// parseJSON reads JSON with comments and trailing commas.
func parseJSON(body []byte) (any, *hujson.Value, error) {
	if depth(body) > maxDepth {
		return nil, nil, fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	}
	root, err := hujson.Parse(body)
	if err != nil {
		return nil, nil, err // it says the line and column
	}
	standard := root.Clone()
	standard.Standardize()
	decoder := json.NewDecoder(bytes.NewReader(standard.Pack()))
	decoder.UseNumber()
	var v any
	err = decoder.Decode(&v)
	return v, &root, err
}

// plain returns a value as a JSON decoder would.
func plain(value any) (v any, err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&v)
	return v, err
}

// assign returns a copy of root in which the value at a path is set, and whether it was so.
func assign(root any, path []string, value any) (any, bool, error) {
	if len(path) == 0 {
		return value, reflect.DeepEqual(root, value), nil
	}
	object, ok := root.(map[string]any)
	if !ok && root != nil {
		return nil, false, fmt.Errorf("expected an object that holds %q", path[0])
	}
	first := path[0]
	inner, same, err := assign(object[first], path[1:], value)
	if err != nil {
		return nil, false, err
	}
	changed := map[string]any{first: inner}
	for name, v := range object {
		if name != first {
			changed[name] = v
		}
	}
	return changed, same, nil
}

// splice writes the value into the text and leaves the rest of the text as it is.
func splice(body []byte, at *hujson.Value, path []string, value any) ([]byte, error) {
	for len(path) > 0 {
		object, ok := at.Value.(*hujson.Object)
		if !ok {
			break
		}
		member := last(object, path[0])
		if member == nil {
			return insert(body, at, object, path, value)
		}
		at, path = &member.Value, path[1:]
	}
	start := lineIndent(body, at.StartOffset)
	text, err := encode(nest(path, value), start, indentUnit(body))
	if err != nil {
		return nil, err
	}
	return cut(body, at.StartOffset, at.EndOffset, withEnds(body, text)), nil
}

// last returns the last member with a name: parsers use the last of duplicates.
func last(object *hujson.Object, name string) (found *hujson.ObjectMember) {
	for i := range object.Members {
		if literal, ok := object.Members[i].Name.Value.(hujson.Literal); ok && literal.String() == name {
			found = &object.Members[i]
		}
	}
	return found
}

// insert adds a member at the end of an object.
func insert(body []byte, at *hujson.Value, object *hujson.Object, path []string, value any) ([]byte, error) {
	outer, unit := lineIndent(body, at.StartOffset), indentUnit(body)
	indent := outer + unit
	closing := at.EndOffset - 1
	end := at.StartOffset + len(bytes.TrimRight(body[at.StartOffset:closing], " \t\r\n"))
	text, err := encode(nest(path[1:], value), indent, unit)
	if err != nil {
		return nil, err
	}
	name, err := encode(path[0], "", "")
	if err != nil {
		return nil, err
	}
	added := "\n" + indent + string(name) + ": " + string(text)
	n := len(object.Members)
	trailing := n > 0 && object.Members[n-1].Value.AfterExtra != nil
	if trailing {
		added += ","
	}
	if !bytes.Contains(body[end:closing], []byte("\n")) {
		added += "\n" + outer
	}
	result := cut(body, end, end, withEnds(body, []byte(added)))
	if n > 0 && !trailing {
		comma := object.Members[n-1].Value.EndOffset
		result = cut(result, comma, comma, []byte(","))
	}
	return result, nil
}

// nest wraps a value into one object for each name.
func nest(path []string, value any) any {
	for _, name := range slices.Backward(path) {
		value = map[string]any{name: value}
	}
	return value
}

func cut(body []byte, from, to int, text []byte) []byte {
	return bytes.Join([][]byte{body[:from], text, body[to:]}, nil)
}

// lineIndent returns the white space at the start of the line of an offset.
func lineIndent(body []byte, offset int) string {
	line := body[bytes.LastIndexByte(body[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// indentUnit returns the indentation of the first indented line, or two spaces.
func indentUnit(body []byte) string {
	for line := range strings.Lines(string(body)) {
		text := strings.TrimLeft(line, " \t")
		if unit := line[:len(line)-len(text)]; unit != "" && strings.HasPrefix(text, `"`) {
			return unit
		}
	}
	return "  "
}

// withEnds returns text with the line ends of a file.
func withEnds(body, text []byte) []byte {
	if bytes.Contains(body, []byte("\r\n")) {
		return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	return text
}
