package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// decodeArguments reads the arguments of a call over the defaults.
func decodeArguments[In any](raw, defaults json.RawMessage) (In, error) {
	var in In
	if defaults != nil {
		if err := json.Unmarshal(defaults, &in); err != nil {
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
		return in, argumentError(reflect.TypeFor[In](), err)
	}
	return in, nil
}

// argumentError says what is wrong with arguments in words that do not speak
// of Go. It is rarely seen: the host has checked them.
func argumentError(in reflect.Type, err error) *tool.Error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return tool.Errorf(tool.InvalidArgument, "argument %q cannot be a JSON %s", argumentPath(in, wrong.Field), wrong.Value).
			WithCause(err)
	}
	return tool.Errorf(tool.InvalidArgument, "the arguments cannot be read: %v", err).WithCause(err)
}

// argumentPath returns the path of a field by its JSON names only: that of
// [json.UnmarshalTypeError] holds the Go names of embedded structs too.
func argumentPath(in reflect.Type, path string) string {
	var names []string
	for name := range strings.SplitSeq(path, ".") {
		for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice || in.Kind() == reflect.Array {
			in = in.Elem()
		}
		if in.Kind() != reflect.Struct {
			names = append(names, name)
			continue
		}
		fields := jsonFields(in)
		i := slices.IndexFunc(fields, func(f jsonField) bool { return f.name == name })
		if i < 0 {
			continue // an embedded struct, whose fields are those of in as well
		}
		names = append(names, name)
		in = fields[i].Type
	}
	return strings.Join(names, ".")
}

// inferResult returns the schema of a tool's structured result; none if it has
// no structured result.
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

// toResult converts what a tool returned. Beside an error only what a caller
// can read is kept: the structured result of a failure is half made.
func toResult(out any, failed bool) (tool.Result, error) {
	if result, ok := out.(tool.Result); ok {
		return result, nil
	}
	v := reflect.ValueOf(out)
	if v.Kind() == reflect.String {
		if v.Len() == 0 {
			return tool.Result{}, nil
		}
		return tool.TextResult(v.String()), nil
	}
	if failed || empty(v.Type()) || (v.Kind() != reflect.Struct && v.IsNil()) {
		return tool.Result{}, nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return tool.Result{}, fmt.Errorf("encode result: %w", err)
	}
	result := tool.Result{Structured: raw}
	if t, ok := out.(Texter); ok {
		result.Content = []tool.Content{tool.Text(t.Text())}
	}
	return result, nil
}

// toError turns what a tool returned into what a caller reads.
func toError(ctx context.Context, err error) *tool.Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*tool.Error](err); ok {
		if e == nil {
			return nil // a nil *tool.Error in an error: the author meant success
		}
		if !e.Code.Valid() {
			known := *e
			known.Code = tool.Failed
			return &known
		}
		return e
	}
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return tool.Errorf(tool.Canceled, "the call was canceled").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return tool.Errorf(tool.Timeout, "the tool ran out of time: %v", err).WithCause(err)
	default:
		return tool.Errorf(tool.Failed, "%v", err).WithCause(err)
	}
}
