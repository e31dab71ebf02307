package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// fixtureVariable names the plugin that the test binary is instead of a test.
const fixtureVariable = "SDK_FIXTURE"

func TestMain(m *testing.M) {
	switch os.Getenv(fixtureVariable) {
	case "":
		goleak.VerifyTestMain(m)
	case "limits":
		limitsPlugin().Serve()
	case "mistaken":
		p := sdk.New("mistaken", "1.0.0")
		with[struct{}](tool.Spec{Name: "Bad"})(p)
		p.Serve()
	}
}

func limitsPlugin() *sdk.Plugin {
	p := sdk.New("limits", "1.0.0")
	sdk.AddTool(p, spec("memory"), func(context.Context, *sdk.Call, struct{}) (string, error) {
		return fmt.Sprint(debug.SetMemoryLimit(-1)), nil
	})
	return p
}

func TestResults(t *testing.T) {
	type out struct {
		N int `json:"n"`
	}
	denied := tool.Errorf(tool.PermissionDenied, "no").WithHint("ask")
	var nilError *tool.Error
	p := sdk.New("results", "1.0.0")
	text := func(name, s string, err error) {
		sdk.AddTool(p, spec(name), func(context.Context, *sdk.Call, struct{}) (string, error) { return s, err })
	}
	text("text", "hello", nil)
	text("empty_text", "", nil)
	text("text_and_error", "partial", errors.New("exit status 1"))
	text("stray_byte", "a\xffb", errors.New("c\xff"))
	text("tool_error", "", fmt.Errorf("wrapped: %w", denied))
	text("unknown_code", "", &tool.Error{Code: "ENOENT", Message: "no"})
	text("nil_error", "fine", nilError)
	text("deadline", "", context.DeadlineExceeded)
	sdk.AddTool(p, spec("struct_out"), func(context.Context, *sdk.Call, struct{}) (out, error) { return out{7}, nil })
	sdk.AddTool(p, spec("struct_error"), func(context.Context, *sdk.Call, struct{}) (out, error) { return out{7}, errors.New("no") })
	sdk.AddTool(p, spec("pointer"), func(context.Context, *sdk.Call, struct{}) (*out, error) { return &out{7}, nil })
	sdk.AddTool(p, spec("nil_pointer"), func(context.Context, *sdk.Call, struct{}) (*out, error) { return nil, nil })
	sdk.AddTool(p, spec("texter"), func(context.Context, *sdk.Call, struct{}) (spoken, error) { return spoken{"hi"}, nil })
	sdk.AddTool(p, spec("unencodable"), func(context.Context, *sdk.Call, struct{}) (map[string]any, error) {
		return map[string]any{"f": func() {}}, nil
	})
	sdk.AddTool(p, spec("result"), func(context.Context, *sdk.Call, struct{}) (tool.Result, error) {
		return tool.Result{Content: []tool.Content{tool.Text("x")}, Metadata: map[string]any{"a": "b"}}, errors.New("no")
	})
	sdk.AddTool(p, spec("no_kind"), func(context.Context, *sdk.Call, struct{}) (tool.Result, error) {
		return tool.Result{Content: []tool.Content{{}}}, nil
	})
	sdk.AddTool(p, spec("too_large"), func(context.Context, *sdk.Call, struct{}) (tool.Result, error) {
		return tool.TextResult(strings.Repeat("x", 64<<20)), nil
	})
	sdk.AddTool(p, spec("panics"), func(context.Context, *sdk.Call, struct{}) (string, error) { panic("secret") })

	failed := func(code tool.Code, message string) tool.Result {
		return tool.ErrorResult(&tool.Error{Code: code, Message: message})
	}
	running := sdktest.Start(t, p, sdktest.Options{})
	for _, tt := range []struct {
		tool string
		want tool.Result
	}{
		{"text", tool.TextResult("hello")},
		{"empty_text", tool.Result{}},
		{"text_and_error", tool.Result{Content: []tool.Content{tool.Text("partial")}, Error: &tool.Error{Code: tool.Failed, Message: "exit status 1"}}},
		{"stray_byte", tool.Result{Content: []tool.Content{tool.Text("a\uFFFDb")}, Error: &tool.Error{Code: tool.Failed, Message: "c\uFFFD"}}},
		{"tool_error", tool.ErrorResult(denied)},
		{"unknown_code", failed(tool.Failed, "no")},
		{"nil_error", tool.TextResult("fine")},
		{"deadline", failed(tool.Timeout, "the tool ran out of time: context deadline exceeded")},
		{"struct_out", tool.Result{Structured: []byte(`{"n":7}`)}},
		{"struct_error", failed(tool.Failed, "no")},
		{"pointer", tool.Result{Structured: []byte(`{"n":7}`)}},
		{"nil_pointer", tool.Result{}},
		{"texter", tool.Result{Content: []tool.Content{tool.Text("he said hi")}, Structured: []byte(`{"said":"hi"}`)}},
		{"unencodable", failed(tool.Failed, "encode result: json: unsupported type: func()")},
		{"result", tool.Result{Content: []tool.Content{tool.Text("x")}, Metadata: map[string]any{"a": "b"}, Error: &tool.Error{Code: tool.Failed, Message: "no"}}},
		{"no_kind", failed(tool.OutputInvalid, "the tool's result has content of no known kind (0)")},
		{"too_large", failed(tool.ResourceExhausted, "the tool's result is larger than 64MiB")},
		{"panics", failed(tool.Internal, "panics panicked; this is a mistake in the plugin, whose log says more")},
		{"missing", failed(tool.NotFound, `plugin "results" has no tool "missing"`)},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			got := running.Call(t.Context(), tt.tool, nil)
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(tool.Error{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.tool, diff)
			}
		})
	}
}

type spoken struct {
	Said string `json:"said"`
}

// Text implements [sdk.Texter].
func (s spoken) Text() string { return "he said " + s.Said }

func TestArguments(t *testing.T) {
	type in struct {
		Mode   string        `json:"mode,omitempty" jsonschema:"x" default:"text"`
		Tags   []string      `json:"tags,omitempty" jsonschema:"x" default:"[\"a\"]"`
		Nested nested        `json:"nested,omitzero" jsonschema:"x"`
		Size   tool.ByteSize `json:"size,omitempty" jsonschema:"x" default:"1KiB"`
	}
	p := sdk.New("arguments", "1.0.0")
	var got in
	sdk.AddTool(p, spec("take"), func(_ context.Context, _ *sdk.Call, args in) (string, error) {
		got = args
		return "", nil
	})
	running := sdktest.Start(t, p, sdktest.Options{})
	for _, tt := range []struct {
		name string
		args map[string]any
		want in
		code tool.Code
	}{
		{name: "defaults", want: in{Mode: "text", Tags: []string{"a"}, Nested: nested{3}, Size: tool.KiB}},
		{
			name: "a zero is not missing",
			args: map[string]any{"mode": "", "tags": []string{}, "nested": map[string]any{"depth": 0}, "size": 0},
			want: in{Tags: []string{}},
		},
		{
			name: "given", args: map[string]any{"mode": "x", "tags": []string{"b", "c"}, "nested": map[string]any{}, "size": 5},
			want: in{Mode: "x", Tags: []string{"b", "c"}, Nested: nested{3}, Size: 5},
		},
		{name: "wrong type", args: map[string]any{"mode": 7}, code: tool.InvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got = in{}
			result := running.Call(t.Context(), "take", tt.args)
			if tt.code != "" {
				if result.Error == nil || result.Error.Code != tt.code {
					t.Errorf("error = %v, want code %q", result.Error, tt.code)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || result.Error != nil {
				t.Errorf("error = %v, arguments (-want +got):\n%s", result.Error, diff)
			}
		})
	}
	if got := running.Call(t.Context(), "take", []int{1}); got.Error == nil || got.Error.Code != tool.InvalidArgument {
		t.Errorf("a call with a list = %v, want code %q", got.Error, tool.InvalidArgument)
	}
}

// TestServeByHand shows what a person reads who starts a plugin, or one whose
// code is wrong.
func TestServeByHand(t *testing.T) {
	for _, tt := range []struct{ fixture, want string }{
		{"limits", "limits 1.0.0 is a plugin: a toolhost starts it."},
		{"mistaken", `tool "Bad": the name is not valid`},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = []string{fixtureVariable + "=" + tt.fixture}
		output, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s: ended with %v, want exit status 1", tt.fixture, err)
		}
		if !strings.Contains(string(output), tt.want) {
			t.Errorf("%s: printed %q, want %q", tt.fixture, output, tt.want)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	running := sdktest.StartBinary(t, os.Args[0], sdktest.Options{
		Env: []string{fixtureVariable + "=limits"}, Config: sdk.Config{MemoryLimit: 1000 * tool.MiB},
	})
	if got, want := running.Call(t.Context(), "memory", nil).Text(), fmt.Sprint(int64(800*tool.MiB)); got != want {
		t.Errorf("the garbage collector's limit = %s, want %s", got, want)
	}
}
