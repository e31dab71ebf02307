package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// decodeArguments decodes the arguments of a call on top of the defaults.
func decodeArguments[In any](raw json.RawMessage, defaults defaults) (In, error) {
	var in In
	if missing := defaults.missing(raw); missing != nil {
		if err := json.Unmarshal(missing, &in); err != nil {
			return in, fmt.Errorf("decode defaults: %w", err)
		}
	}
	if len(raw) == 0 {
		return in, nil
	}
	if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return in, tool.Errorf(tool.InvalidArgument, "the arguments are not a JSON object")
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return in, argumentError(reflect.TypeFor[In](), raw, err)
	}
	return in, nil
}

// argumentError describes wrong arguments without terms of Go. The host has
// checked the schema, so most mistakes are strings that are not a date, an address
// or the like.
func argumentError(in reflect.Type, raw json.RawMessage, err error) *tool.Error {
	at, ok := findWrong(in, raw, "")
	typeError, isType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return tool.Errorf(tool.InvalidArgument, "the arguments are not valid: %v", err).WithCause(err)
	case isType:
		return tool.Errorf(tool.InvalidArgument, "argument %q cannot be a JSON %s", at.path, typeError.Value).WithCause(err)
	case at.typ == reflect.TypeFor[time.Time]():
		return tool.Errorf(tool.InvalidArgument, "argument %q is %s, expected a date and time as in RFC 3339, such as %q", at.path, at.value, "2026-01-31T15:04:05Z").WithCause(err)
	default:
		return tool.Errorf(tool.InvalidArgument, "argument %q is %s, which is not valid: %v", at.path, at.value, err).WithCause(err)
	}
}

// maxEcho is how much of a wrong argument an error repeats, in bytes.
const maxEcho = 80

// wrong is a value in the arguments that does not fit its type.
type wrong struct {
	path  string
	typ   reflect.Type
	value string // JSON, short enough for a message
}

// findWrong finds the innermost value in raw that does not fit its type.
// encoding/json reports no path when a type's own method fails, and paths with
// embedded structs in other cases.
func findWrong(t reflect.Type, raw json.RawMessage, path string) (wrong, bool) {
	t = indirect(t)
	if json.Unmarshal(raw, reflect.New(t).Interface()) == nil {
		return wrong{}, false
	}
	here := wrong{path: path, typ: t, value: display.Cut(string(raw), maxEcho)}
	if _, ok := (&inferrer{use: arguments}).special(t, ""); ok {
		return here, true
	}
	var parts map[string]json.RawMessage
	var items []json.RawMessage
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		_ = json.Unmarshal(raw, &parts) // without parts it is wrong as a whole
	case reflect.Slice, reflect.Array:
		_ = json.Unmarshal(raw, &items)
	}
	for n, item := range items {
		if inner, ok := findWrong(t.Elem(), item, fmt.Sprintf("%s[%d]", path, n)); ok {
			return inner, true
		}
	}
	if t.Kind() == reflect.Struct {
		for _, f := range jsonFields(t) {
			if inner, ok := findWrong(f.Type, parts[f.name], join(path, f.name)); parts[f.name] != nil && ok {
				return inner, true
			}
		}
		return here, path != ""
	}
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		if inner, ok := findWrong(t.Elem(), parts[key], join(path, key)); ok {
			return inner, true
		}
	}
	return here, true
}

// inferResult returns the schema of a tool's structured result, if it has one.
func inferResult(t reflect.Type) inferred {
	if t == reflect.TypeFor[tool.Result]() || t.Kind() == reflect.String || empty(t) {
		return inferred{}
	}
	if s := indirect(t); s.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		reason := fmt.Sprintf("the result cannot be %s; expected a string, a struct, a map or tool.Result", t)
		return inferred{mistakes: []DefinitionError{{Reason: reason}}}
	}
	out := infer(indirect(t), results)
	for n := range out.mistakes {
		out.mistakes[n].Reason = "in the result: " + out.mistakes[n].Reason
	}
	return out
}

func empty(t reflect.Type) bool { return t.Kind() == reflect.Struct && t.NumField() == 0 }

// toResult converts the value that a tool returned. If the tool failed, a
// structured value is dropped, because it may be incomplete.
func toResult[Out any](out *Out, failed bool, places *nils) (tool.Result, error) {
	if result, ok := any(out).(*tool.Result); ok {
		if result.Structured != nil && !json.Valid(result.Structured) { // any other is encoded here
			return tool.Result{}, mistakeInResult("a structured result that is not JSON")
		}
		return *result, nil
	}
	v := reflect.ValueOf(out).Elem()
	if v.Kind() == reflect.String {
		if v.Len() == 0 {
			return tool.Result{}, nil
		}
		return tool.TextResult(v.String()), nil
	}
	if failed || empty(v.Type()) {
		return tool.Result{}, nil
	}
	if v.Kind() == reflect.Pointer && v.IsNil() {
		// The published schema does not allow null.
		return tool.Result{}, mistakeInResult("nothing").
			WithCause(fmt.Errorf("it returned a nil %s and no error: return a result, an error, or both from a tool.Result", v.Type()))
	}
	written := v
	if places.found(v) {
		written = places.filled(v)
	}
	// By address, so that encoding/json finds methods of the pointer.
	raw, err := json.Marshal(written.Addr().Interface())
	if err != nil {
		return tool.Result{}, mistakeInResult("something that JSON cannot hold").WithCause(fmt.Errorf("encode result: %w", err))
	}
	result := tool.Result{Structured: raw}
	if text, ok := texter(out); ok {
		result.Content = []tool.Content{tool.Text(text.Text())}
	}
	return result, nil
}

// texter finds the method Text of Out or of a pointer to it.
func texter[Out any](out *Out) (Texter, bool) {
	if t, ok := any(out).(Texter); ok {
		return t, true
	}
	t, ok := any(*out).(Texter) // Out is a pointer itself
	return t, ok
}

// mistakeInResult returns the error for a result that cannot be sent. Its cause
// is logged.
func mistakeInResult(what string) *tool.Error {
	return tool.Errorf(tool.Internal, "the tool returned %s; this is a mistake in the plugin, and the host's log has the details", what)
}
