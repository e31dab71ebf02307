package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

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
		// Package sdk/proc keeps a process for the next command.
		goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/toolhost/toolhost/internal/proctree.OnOwnThread"), goleak.IgnoreAnyFunction("github.com/toolhost/toolhost/internal/proctree.OnOwnThread.func1"))
	case "limits":
		limitsPlugin().Serve()
	case "faulty":
		faultyPlugin().Serve()
	case "stops":
		stopsPlugin().Serve()
	case "prints":
		printsPlugin().Serve()
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

func faultyPlugin() *sdk.Plugin {
	p := sdk.New("faulty", "1.0.0")
	sdk.AddTool(p, spec("read_stdin"), func(context.Context, *sdk.Call, struct{}) (string, error) {
		data, err := io.ReadAll(os.Stdin)
		return fmt.Sprintf("%d bytes", len(data)), err
	})
	sdk.AddTool(p, spec("panics"), func(context.Context, *sdk.Call, struct{}) (string, error) { panic("on purpose") })
	sdk.AddTool(p, spec("not_a_number"), func(context.Context, *sdk.Call, struct{}) (map[string]float64, error) {
		return map[string]float64{"ratio": math.NaN()}, nil
	})
	sdk.AddTool(p, spec("nothing"), func(context.Context, *sdk.Call, struct{}) (*nestedOut, error) { return nil, nil })
	sdk.AddTool(p, spec("leaks"), func(context.Context, *sdk.Call, struct{}) (string, error) {
		return "", errors.New("open /srv/key: permission denied")
	})
	sdk.AddTool(p, spec("rejects"), func(context.Context, *sdk.Call, struct{}) (string, error) {
		return "", tool.Errorf(tool.Rejected, "no")
	})
	return p
}

// TestReadStdin shows that a tool that reads its standard input does not wait
// for the host's end.
func TestReadStdin(t *testing.T) {
	running := sdktest.StartBinary(t, os.Args[0], sdktest.Options{Env: []string{fixtureVariable + "=faulty"}})
	if got := running.Call(t.Context(), "read_stdin", nil); got.Text() != "0 bytes" || got.Error != nil {
		t.Errorf("read_stdin = %q (%v), want nothing to read", got.Text(), got.Error)
	}
}

// printsPlugin prints before it serves, and has its own standard streams.
func printsPlugin() *sdk.Plugin {
	p := sdk.New("prints", "1.0.0")
	fmt.Fprintln(os.Stdout, "1|1|unix|/not/this/one|grpc|")
	stdout, stderr := os.NewFile(2, "out"), os.NewFile(2, "err")
	os.Stdout, os.Stderr = stdout, stderr
	sdk.AddTool(p, spec("streams"), func(context.Context, *sdk.Call, struct{}) (string, error) {
		if os.Stdout != stdout || os.Stderr != stderr {
			return "replaced", nil
		}
		fmt.Fprintln(os.Stdout, "printed in a call")
		return "the plugin's own", nil
	})
	return p
}

// TestStandardStreams shows that serving leaves a plugin's standard streams
// alone, which its goroutines may use at any time, and that the host reads its
// handshake and nothing that is printed.
func TestStandardStreams(t *testing.T) {
	running := sdktest.StartBinary(t, os.Args[0], sdktest.Options{Env: []string{fixtureVariable + "=prints"}})
	if got := running.Call(t.Context(), "streams", nil).Text(); got != "the plugin's own" {
		t.Errorf("the standard streams are %q, want %q", got, "the plugin's own")
	}
	running.Close() // from now on Stderr has everything
	for _, want := range []string{"1|1|unix|/not/this/one|grpc|\n", "printed in a call\n"} {
		if !strings.Contains(running.Stderr(), want) {
			t.Errorf("standard error has %q, want %q in it", running.Stderr(), want)
		}
	}
}

// TestFaultsAreLogged shows that the log contains what the caller does not see, with a readable
// stack.
func TestFaultsAreLogged(t *testing.T) {
	running := sdktest.StartBinary(t, os.Args[0], sdktest.Options{Env: []string{fixtureVariable + "=faulty"}})
	for _, name := range []string{"panics", "not_a_number", "nothing", "leaks", "rejects"} {
		if got := running.Call(t.Context(), name, nil); got.Error == nil {
			t.Errorf("%s does not fail", name)
		}
	}
	running.Close() // from now on Stderr has everything
	var messages []string
	for line := range strings.Lines(running.Stderr()) {
		var entry struct {
			Message string `json:"@message"`
			Panic   string `json:"panic"`
			Tool    string `json:"tool"`
			Error   string `json:"error"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("a line of the log is not JSON: %s", line)
			continue
		}
		messages = append(messages, strings.Join([]string{entry.Message, entry.Panic, entry.Tool, entry.Error}, "|"))
	}
	for _, want := range []string{
		"panic|on purpose||",
		"\t" + sourceOf(t, "sdk_test.go"),
		"the tool failed with an internal error||not_a_number|encode result: json: unsupported value: NaN",
		"the tool failed with an internal error||nothing|it returned a nil *sdk_test.nestedOut and no error",
		"the tool failed with an internal error||leaks|open /srv/key: permission denied",
		"the tool returned a code that tools cannot use; it was replaced by failed||rejects|",
	} {
		if !slices.ContainsFunc(messages, func(m string) bool { return strings.HasPrefix(m, want) }) {
			t.Errorf("the log has no line that begins with %q:\n%s", want, strings.Join(messages, "\n"))
		}
	}
}

// sourceOf returns a file of this package as a stack names it.
func sourceOf(t *testing.T, name string) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the test does not know its file")
	}
	return filepath.Join(filepath.Dir(file), name)
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
	text("stray_byte", "a\xffb", tool.Errorf(tool.NotFound, "c\xff"))
	text("tool_error", "", fmt.Errorf("wrapped: %w", denied))
	text("unknown_code", "", &tool.Error{Code: "ENOENT", Message: "no"})
	text("host_code", "", tool.Errorf(tool.PluginCrashed, "no"))
	text("no_message", "", &tool.Error{Code: tool.NotFound})
	text("empty_error", "", errors.New(""))
	text("nil_error", "fine", nilError)
	text("deadline", "", context.DeadlineExceeded)
	text("read_only_files", "", &os.PathError{Op: "open", Path: "/srv/secret", Err: syscall.EROFS})
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
	sdk.AddTool(p, spec("host_code_in_result"), func(context.Context, *sdk.Call, struct{}) (tool.Result, error) {
		return tool.ErrorResult(tool.Errorf(tool.Rejected, "no")), nil
	})
	sdk.AddTool(p, spec("not_a_number"), func(context.Context, *sdk.Call, struct{}) (map[string]float64, error) {
		return map[string]float64{"ratio": math.NaN()}, nil
	})
	sdk.AddTool(p, spec("pointer_texter"), func(context.Context, *sdk.Call, struct{}) (whispered, error) { return whispered{"hi"}, nil })
	sdk.AddTool(p, spec("no_kind"), func(context.Context, *sdk.Call, struct{}) (tool.Result, error) {
		return tool.Result{Content: []tool.Content{{}}}, nil
	})
	sdk.AddTool(p, spec("no_json"), func(context.Context, *sdk.Call, struct{}) (tool.Result, error) {
		return tool.Result{Structured: []byte(`{"n":`)}, nil
	})
	sdk.AddTool(p, spec("too_large"), func(context.Context, *sdk.Call, struct{}) (tool.Result, error) {
		return tool.TextResult(strings.Repeat("x", 64<<20)), nil
	})
	sdk.AddTool(p, spec("panics"), func(context.Context, *sdk.Call, struct{}) (string, error) { panic("secret") })

	failed := func(code tool.Code, message string) tool.Result {
		return tool.ErrorResult(&tool.Error{Code: code, Message: message})
	}
	hidden := tool.Errorf(tool.Internal, "internal error in call tc_sdktest").WithHint("the host's log says more under this id")
	running := sdktest.Start(t, p, sdktest.Options{})
	for _, tt := range []struct {
		tool string
		want tool.Result
	}{
		{"text", tool.TextResult("hello")},
		{"empty_text", tool.Result{}},
		{"text_and_error", tool.Result{Content: []tool.Content{tool.Text("partial")}, Error: hidden}},
		{"stray_byte", tool.Result{Content: []tool.Content{tool.Text("a\uFFFDb")}, Error: &tool.Error{Code: tool.NotFound, Message: "c\uFFFD"}}},
		{"tool_error", tool.ErrorResult(denied)},
		{"unknown_code", failed(tool.Failed, "no")},
		{"host_code", failed(tool.Failed, "no")},
		{"host_code_in_result", failed(tool.Failed, "no")},
		{"no_message", failed(tool.NotFound, "the tool failed without a message")},
		{"empty_error", tool.ErrorResult(hidden)},
		{"nil_error", tool.TextResult("fine")},
		{"deadline", failed(tool.Timeout, "the tool ran out of time")},
		{"read_only_files", failed(tool.Failed, "the tool failed: read-only file system")},
		{"struct_out", tool.Result{Structured: []byte(`{"n":7}`)}},
		{"struct_error", tool.ErrorResult(hidden)},
		{"pointer", tool.Result{Structured: []byte(`{"n":7}`)}},
		{"nil_pointer", failed(tool.Internal, "the tool returned nothing; this is a mistake in the plugin, and the host's log has the details")},
		{"texter", tool.Result{Content: []tool.Content{tool.Text("he said hi")}, Structured: []byte(`{"said":"hi"}`)}},
		{"pointer_texter", tool.Result{Content: []tool.Content{tool.Text("psst: hi")}, Structured: []byte(`{"said":"hi"}`)}},
		{"not_a_number", failed(tool.Internal, "the tool returned something that JSON cannot hold; this is a mistake in the plugin, and the host's log has the details")},
		{"unencodable", failed(tool.Internal, "the tool returned something that JSON cannot hold; this is a mistake in the plugin, and the host's log has the details")},
		{"result", tool.Result{Content: []tool.Content{tool.Text("x")}, Metadata: map[string]any{"a": "b"}, Error: hidden}},
		{"no_kind", failed(tool.Internal, "the tool returned content of no known kind (0); this is a mistake in the plugin, and the host's log has the details")},
		{"no_json", failed(tool.Internal, "the tool returned a structured result that is not JSON; this is a mistake in the plugin, and the host's log has the details")},
		{"too_large", failed(tool.ResourceExhausted, "the tool's result is larger than 64MiB")},
		{"panics", failed(tool.Internal, "panics panicked; this is a mistake in the plugin, and the host's log has the stack")},
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

type whispered struct {
	Said string `json:"said"`
}

// Text implements [sdk.Texter] by the address of a result that is a value.
func (w *whispered) Text() string { return "psst: " + w.Said }

func TestArguments(t *testing.T) {
	type where struct {
		Depth int        `json:"depth" jsonschema:"x" default:"3"`
		Addr  netip.Addr `json:"addr,omitzero" jsonschema:"x"`
	}
	type in struct {
		Mode   string        `json:"mode,omitempty" jsonschema:"x" default:"text"`
		Tags   []string      `json:"tags,omitempty" jsonschema:"x" default:"[\"a\"]"`
		Nested where         `json:"nested,omitzero" jsonschema:"x"`
		Size   tool.ByteSize `json:"size,omitempty" jsonschema:"x" default:"1KiB"`
		Since  time.Time     `json:"since,omitzero" jsonschema:"x"`
		Times  []time.Time   `json:"times,omitempty" jsonschema:"x"`
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
		says string
	}{
		{name: "defaults", want: in{Mode: "text", Tags: []string{"a"}, Nested: where{Depth: 3}, Size: tool.KiB}},
		{
			name: "a zero is not missing",
			args: map[string]any{"mode": "", "tags": []string{}, "nested": map[string]any{"depth": 0}, "size": 0},
			want: in{Tags: []string{}},
		},
		{
			name: "given", args: map[string]any{"mode": "x", "tags": []string{"b", "c"}, "nested": map[string]any{}, "size": 5},
			want: in{Mode: "x", Tags: []string{"b", "c"}, Nested: where{Depth: 3}, Size: 5},
		},
		{name: "no date", args: map[string]any{"since": "2020"}, code: tool.InvalidArgument, says: `argument "since" is "2020", expected a date and time as in RFC 3339, such as "2026-01-31T15:04:05Z"`},
		{name: "no date in a list", args: map[string]any{"times": []string{"2026-01-31T15:04:05Z", "now"}}, code: tool.InvalidArgument, says: `argument "times[1]" is "now", expected a date and time`},
		{name: "no address", args: map[string]any{"nested": map[string]any{"addr": "x"}}, code: tool.InvalidArgument, says: `argument "nested.addr" is "x", which is not valid`},
		{name: "wrong type", args: map[string]any{"mode": 7}, code: tool.InvalidArgument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got = in{}
			result := running.Call(t.Context(), "take", tt.args)
			if tt.code != "" {
				if result.Error == nil || result.Error.Code != tt.code || !strings.HasPrefix(result.Error.Message, tt.says) {
					t.Errorf("error = %v, want code %q and %q", result.Error, tt.code, tt.says)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" || result.Error != nil {
				t.Errorf("error = %v, arguments (-want +got):\n%s", result.Error, diff)
			}
		})
	}
	if got := running.Call(t.Context(), "take", []int{1}); got.Error == nil || got.Error.Code != tool.InvalidArgument {
		t.Errorf("a call with a list = %v, want code %q", got.Error, tool.InvalidArgument)
	}
}

// TestDefaultsAreReplaced shows that a given value replaces a default as a whole: maps, lists
// and structs are not merged.
func TestDefaultsAreReplaced(t *testing.T) {
	type part struct {
		A int `json:"a,omitempty" jsonschema:"x"`
		B int `json:"b,omitempty" jsonschema:"x"`
	}
	type inner struct {
		Labels map[string]string `json:"labels,omitempty" jsonschema:"x" default:"{\"in\":\"default\"}"`
		Depth  int               `json:"depth,omitempty" jsonschema:"x" default:"3"`
	}
	type in struct {
		Labels map[string]string `json:"labels,omitempty" jsonschema:"x" default:"{\"a\":\"default\"}"`
		Parts  []part            `json:"parts,omitempty" jsonschema:"x" default:"[{\"a\":1,\"b\":2}]"`
		One    part              `json:"one,omitzero" jsonschema:"x" default:"{\"a\":1,\"b\":2}"`
		Inner  inner             `json:"inner,omitzero" jsonschema:"x"`
	}
	p := sdk.New("defaults", "1.0.0")
	var got in
	sdk.AddTool(p, spec("take"), func(_ context.Context, _ *sdk.Call, args in) (string, error) {
		got = args
		return "", nil
	})
	running := sdktest.Start(t, p, sdktest.Options{})
	text := func(key, value string) map[string]string { return map[string]string{key: value} }
	for _, tt := range []struct {
		args string
		want in
	}{
		{`{}`, in{text("a", "default"), []part{{1, 2}}, part{1, 2}, inner{text("in", "default"), 3}}},
		{`{"labels":{"b":"given"},"parts":[{"a":5}],"one":{"a":5}}`, in{text("b", "given"), []part{{A: 5}}, part{A: 5}, inner{text("in", "default"), 3}}},
		{`{"labels":{},"parts":[],"one":{},"inner":{"labels":{"c":"given"}}}`, in{map[string]string{}, []part{}, part{}, inner{text("c", "given"), 3}}},
		{`{"inner":{"depth":7}}`, in{text("a", "default"), []part{{1, 2}}, part{1, 2}, inner{text("in", "default"), 7}}},
	} {
		got = in{}
		if result := running.Call(t.Context(), "take", json.RawMessage(tt.args)); result.Error != nil {
			t.Errorf("%s: %v", tt.args, result.Error)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.args, diff)
		}
	}
}

// TestIntegers shows that each integer type accepts its smallest and largest value, declares
// them in its schema, and refuses values beyond them.
func TestIntegers(t *testing.T) {
	type in struct {
		I8  int8   `json:"i8,omitempty" jsonschema:"x"`
		I16 int16  `json:"i16,omitempty" jsonschema:"x"`
		I32 int32  `json:"i32,omitempty" jsonschema:"x"`
		I64 int64  `json:"i64,omitempty" jsonschema:"x"`
		U   uint   `json:"u,omitempty" jsonschema:"x"`
		U8  uint8  `json:"u8,omitempty" jsonschema:"x"`
		U16 uint16 `json:"u16,omitempty" jsonschema:"x"`
		U32 uint32 `json:"u32,omitempty" jsonschema:"x"`
		U64 uint64 `json:"u64,omitempty" jsonschema:"x"`
	}
	p := sdk.New("integers", "1.0.0")
	sdk.AddTool(p, spec("take"), func(_ context.Context, _ *sdk.Call, args in) (in, error) { return args, nil })
	running := sdktest.Start(t, p, sdktest.Options{})
	var schema struct {
		Properties map[string]struct{ Type, Minimum, Maximum json.RawMessage }
	}
	if err := json.Unmarshal(running.Tools()[0].InputSchema, &schema); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name                         string
		minimum, maximum             string // in the schema
		smallest, largest, low, high string
	}{
		{"i8", "-128", "127", "-128", "127", "-129", "128"},
		{"i16", "-32768", "32767", "-32768", "32767", "-32769", "32768"},
		{"i32", "-2147483648", "2147483647", "-2147483648", "2147483647", "-2147483649", "2147483648"},
		{"i64", "", "", "-9223372036854775808", "9223372036854775807", "-9223372036854775809", "9223372036854775808"},
		{"u", "0", "", "1", "18446744073709551615", "-1", "18446744073709551616"},
		{"u8", "0", "255", "1", "255", "-1", "256"},
		{"u16", "0", "65535", "1", "65535", "-1", "65536"},
		{"u32", "0", "4294967295", "1", "4294967295", "-1", "4294967296"},
		{"u64", "0", "", "1", "18446744073709551615", "-1", "18446744073709551616"},
	} {
		property := schema.Properties[tt.name]
		if string(property.Type) != `"integer"` || string(property.Minimum) != tt.minimum || string(property.Maximum) != tt.maximum {
			t.Errorf("the schema of %s is %s from %s to %s, want integer from %s to %s", tt.name, property.Type, property.Minimum, property.Maximum, tt.minimum, tt.maximum)
		}
		call := func(value string) tool.Result {
			return running.Call(t.Context(), "take", json.RawMessage(fmt.Sprintf(`{%q:%s}`, tt.name, value)))
		}
		for _, value := range []string{tt.smallest, tt.largest} {
			result := call(value)
			if want := fmt.Sprintf(`{%q:%s}`, tt.name, value); string(result.Structured) != want || result.Error != nil {
				t.Errorf("%s = %s comes back as %s (%v), want %s", tt.name, value, result.Structured, result.Error, want)
			}
		}
		for _, value := range []string{tt.low, tt.high, "1.5"} {
			if result := call(value); result.Error == nil || result.Error.Code != tool.InvalidArgument {
				t.Errorf("%s = %s: %v, want code %q", tt.name, value, result.Error, tool.InvalidArgument)
			}
		}
	}
}

// TestServeByHand shows the message for a person who starts a plugin directly, or whose plugin
// has mistakes.
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
