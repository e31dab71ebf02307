package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/sensitive"
	"github.com/toolhost/toolhost/sdk/tool"
)

// fakeRunner is a plugin that behaves as a test defines.
type fakeRunner struct {
	run func(ctx context.Context, plugin string, call tool.Call, sink tool.Sink) (tool.Result, error)
	// refuse returns the error for calls to a program that must not be sent; nil sends all.
	refuse func(digest string) error
	// preview returns a preview; nil if the test expects none.
	preview func(ctx context.Context, call tool.Call) (tool.Preview, error)
}

var _ pipeline.Runner = fakeRunner{}

func (f fakeRunner) Run(ctx context.Context, plugin, digest string, call tool.Call, sink tool.Sink) (tool.Result, bool, error) {
	if f.refuse != nil {
		if err := f.refuse(digest); err != nil {
			return tool.Result{}, false, err
		}
	}
	result, err := f.run(ctx, plugin, call, sink)
	return result, true, err
}

// echo answers with its arguments.
func echo(_ context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
	return tool.TextResult(string(call.Arguments)), nil
}

// Preview implements [pipeline.Runner].
func (f fakeRunner) Preview(ctx context.Context, _, digest string, call tool.Call) (tool.Preview, error) {
	if f.refuse != nil {
		if err := f.refuse(digest); err != nil {
			return tool.Preview{}, err
		}
	}
	if f.preview == nil {
		return tool.Preview{}, tool.Errorf(tool.NotFound, "no preview")
	}
	return f.preview(ctx, call)
}

// answer returns a plugin that always gives the same result.
func answer(result tool.Result) fakeRunner {
	return fakeRunner{run: func(context.Context, string, tool.Call, tool.Sink) (tool.Result, error) { return result, nil }}
}

const echoSchema = `{"type":"object","properties":{
	"text":{"type":"string","description":"what to say"},
	"times":{"type":"integer","description":"how often"},
	"create":{"type":"string","description":"what to make"}},"required":["text"]}`

func echoSpec() tool.Spec {
	return tool.Spec{
		Name: "echo", Aliases: []string{"say"}, Description: "Says it again.", Tier: tool.ReadOnly,
		TierWhen:    []tool.TierRule{{Property: "create", Tier: tool.SideEffecting}},
		InputSchema: json.RawMessage(echoSchema),
	}
}

// newPipeline returns a pipeline with the tools of one plugin.
func newPipeline(tb testing.TB, opts pipeline.Options, specs ...tool.Spec) *pipeline.Pipeline {
	tb.Helper()
	return newHost(tb, opts, specs...).Pipeline
}

// newCatalog returns a catalog with the tools of one plugin. The program is called "old", and
// its tier is the highest tier of the tools.
func newCatalog(tb testing.TB, specs ...tool.Spec) *catalog.Catalog {
	tb.Helper()
	ceiling := tool.ReadOnly
	for _, spec := range specs {
		ceiling = max(ceiling, spec.Tier)
	}
	c, err := catalog.New(catalog.Options{
		Plugins: []catalog.Plugin{{Name: "test", Ceiling: ceiling, TrustClaims: true}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.Publish("test", "old", specs); err != nil {
		tb.Fatal(err)
	}
	if refused := c.Refused(); len(refused) > 0 {
		tb.Fatalf("refused: %v", refused)
	}
	return c
}

func request(name, arguments string) pipeline.Request {
	return pipeline.Request{
		Caller: auth.Caller{User: "ann", Client: "test", Session: "s1"}, Tool: name, Arguments: []byte(arguments),
	}
}

func TestCallReachesThePlugin(t *testing.T) {
	var got tool.Call
	var gotPlugin string
	p := newPipeline(t, pipeline.Options{
		Roots: []string{"/project"},
		Runner: fakeRunner{run: func(_ context.Context, plugin string, call tool.Call, sink tool.Sink) (tool.Result, error) {
			gotPlugin, got = plugin, call
			sink.Progress(tool.Progress{Progress: 1})
			return tool.TextResult("done"), nil
		}},
	}, echoSpec())
	req := request("say", ` {"times": "2", "text": "hi"}`)
	req.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var progress []tool.Progress
	req.Sink.Progress = func(p tool.Progress) { progress = append(progress, p) }

	outcome := p.Call(t.Context(), req)
	if outcome.Result.Error != nil || outcome.Result.Text() != "done" {
		t.Fatalf("Call = %+v, want done", outcome.Result)
	}
	want := tool.Call{
		ID: outcome.ID, Tool: "echo", Arguments: json.RawMessage(`{"text":"hi","times":2}`), Tier: tool.ReadOnly,
		Context: tool.Context{
			Session: "s1", User: "ann", Client: "test", Traceparent: req.Traceparent, Attempt: 1,
			MaxOutput: 40 * tool.KiB, Roots: []string{"/project"}, Files: &tool.FilePolicy{Sensitive: sensitive.Default(), Protect: protect.Presets()},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the plugin's call (-want +got):\n%s", diff)
	}
	if gotPlugin != "test" || outcome.Tool != "echo" || len(outcome.Repairs) != 1 || len(progress) != 1 {
		t.Errorf("plugin %q, tool %q, repairs %v, progress %v", gotPlugin, outcome.Tool, outcome.Repairs, progress)
	}
	if !strings.HasPrefix(outcome.ID, "tc_") || len(outcome.ID) != len("tc_")+36 {
		t.Errorf("ID = %q, want tc_ and a UUID", outcome.ID)
	}
}

// TestCallRefuses checks that no invalid request reaches a plugin.
func TestCallRefuses(t *testing.T) {
	p := newPipeline(t, pipeline.Options{
		Runner: fakeRunner{run: func(_ context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
			t.Errorf("the plugin got %s", call.Arguments)
			return tool.Result{}, nil
		}},
	}, echoSpec())
	for _, tt := range []struct {
		name, tool, arguments string
		want                  tool.Error
	}{
		{"unknown tool", "ecko", `{}`, tool.Error{Code: tool.NotFound, Message: `unknown tool "ecko"`, Hint: "did you mean echo?"}},
		{"malformed JSON", "echo", `{"text": "a",}`, tool.Error{
			Code:    tool.InvalidArgument,
			Message: "arguments are not valid JSON: line 1, column 14 (byte 13): invalid character '}' looking for beginning of object key string",
			Hint:    "send the arguments again as one complete JSON object",
		}},
		{"missing argument", "echo", ``, tool.Error{
			Code: tool.InvalidArgument, Message: "missing required field 'text' in arguments",
			Hint: "the tool takes create (string), text (string, required), times (integer)",
		}},
		{"unknown argument", "echo", `{"text":"a","tims":2}`, tool.Error{
			Code: tool.InvalidArgument, Message: "unknown field 'tims' in arguments, did you mean 'times'?",
			Hint: "the tool takes create (string), text (string, required), times (integer)",
		}},
		{"a call above what is offered", "echo", `{"text":"a","create":"b"}`, tool.Error{
			Code:    tool.PermissionDenied,
			Message: "echo with these arguments is not allowed: its tier side_effecting is above read_only, which is the most that the configuration lets its plugin do",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			outcome := p.Call(t.Context(), request(tt.tool, tt.arguments))
			got := outcome.Result.Error
			if got == nil {
				t.Fatalf("Call(%s, %s) succeeded", tt.tool, tt.arguments)
			}
			if got.Code != tt.want.Code || got.Message != tt.want.Message || got.Hint != tt.want.Hint {
				t.Errorf("Call(%s, %s):\n got %s: %s (%s)\nwant %s: %s (%s)", tt.tool, tt.arguments,
					got.Code, got.Message, got.Hint, tt.want.Code, tt.want.Message, tt.want.Hint)
			}
		})
	}
}

func TestCallEnds(t *testing.T) {
	errDisk := errors.New("disk /dev/secret is full")
	for _, tt := range []struct {
		name string
		run  func(ctx context.Context) (tool.Result, error)
		code tool.Code
		text string
	}{
		{
			"the runner's own error", func(context.Context) (tool.Result, error) {
				return tool.Result{}, fmt.Errorf("run: %w", tool.Errorf(tool.PluginCrashed, "the plugin crashed"))
			}, tool.PluginCrashed, "the plugin crashed",
		},
		{
			"another error", func(context.Context) (tool.Result, error) { return tool.Result{}, errDisk },
			tool.Internal, "internal error in call tc_",
		},
		{
			"a panic", func(context.Context) (tool.Result, error) { panic("oops") },
			tool.Internal, "internal error in call tc_",
		},
		{
			"too slow", func(ctx context.Context) (tool.Result, error) {
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}, tool.Timeout, "echo took longer than 1m0s and was stopped",
		},
		{
			"too slow, in the runner's words", func(ctx context.Context) (tool.Result, error) {
				<-ctx.Done()
				return tool.Result{}, tool.Errorf(tool.Timeout, "the time is over")
			}, tool.Timeout, "echo took longer than 1m0s and was stopped",
		},
		{
			"too slow, and told as canceled", func(ctx context.Context) (tool.Result, error) {
				<-ctx.Done()
				return tool.Result{}, fmt.Errorf("run: %w", tool.Errorf(tool.Canceled, "the call was canceled"))
			}, tool.Timeout, "echo took longer than 1m0s and was stopped",
		},
		{
			"a crash as the time ends", func(ctx context.Context) (tool.Result, error) {
				<-ctx.Done()
				return tool.Result{}, tool.Errorf(tool.PluginCrashed, "the plugin crashed")
			}, tool.PluginCrashed, "the plugin crashed",
		},
		{
			"the runner's own time-out", func(context.Context) (tool.Result, error) {
				return tool.Result{}, tool.Errorf(tool.Timeout, "the plugin took too long to start")
			}, tool.Timeout, "the plugin took too long to start",
		},
		{
			"a code that does not exist", func(context.Context) (tool.Result, error) {
				return tool.ErrorResult(&tool.Error{Code: "made_up", Message: "no"}), nil
			}, tool.Failed, "no",
		},
		{
			"a message without end", func(context.Context) (tool.Result, error) {
				return tool.ErrorResult(tool.Errorf(tool.Failed, "%s", strings.Repeat("x", 1<<20))), nil
			}, tool.Failed, "x",
		},
		{
			"a structured result that is not JSON", func(context.Context) (tool.Result, error) {
				return tool.Result{Structured: json.RawMessage(`{"a":`)}, nil
			}, tool.OutputInvalid, "the tool's structured result is not JSON",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPipeline(t, pipeline.Options{
					Runner: fakeRunner{run: func(ctx context.Context, _ string, _ tool.Call, _ tool.Sink) (tool.Result, error) {
						return tt.run(ctx)
					}},
				}, echoSpec())
				got := p.Call(t.Context(), request("echo", `{"text":"a"}`)).Result.Error
				if got == nil || got.Code != tt.code || !strings.HasPrefix(got.Message, tt.text) || len(got.Message) > 9<<10 {
					t.Fatalf("Call = %v, want %s: %s", got, tt.code, tt.text)
				}
				if strings.Contains(got.ModelText(), "secret") {
					t.Errorf("the caller reads the cause: %s", got.ModelText())
				}
			})
		})
	}
}

// TestReplacedTool checks that a call that was checked against one program never runs in
// another: the host looks it up and checks it again.
func TestReplacedTool(t *testing.T) {
	harmful := echoSpec()
	harmful.TierWhen = []tool.TierRule{{Property: "text", Tier: tool.SideEffecting}}
	other := echoSpec()
	other.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","description":"a number"}}}`)
	other.TierWhen = nil
	for _, tt := range []struct {
		name     string
		publish  []tool.Spec // the tools of the new program
		want     tool.Code
		wantText string
	}{
		{"the same tools", []tool.Spec{echoSpec()}, "", `{"text":"a"}`},
		{
			"another tier",
			[]tool.Spec{harmful},
			tool.PermissionDenied, "echo with these arguments is not allowed: its tier side_effecting is above read_only, which is the most that the configuration lets its plugin do",
		},
		{"another schema", []tool.Spec{other}, tool.InvalidArgument, "unknown field 'text' in arguments, expected n"},
		{"no such tool", nil, tool.NotFound, `unknown tool "echo"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCatalog(t, echoSpec())
			p := newPipeline(t, pipeline.Options{Catalog: c, PluginConcurrency: 1, Runner: fakeRunner{
				run: echo,
				refuse: func(digest string) error {
					if digest == "new" {
						return nil
					}
					if err := c.Publish("test", "new", tt.publish); err != nil {
						return err
					}
					return tool.Errorf(tool.Unavailable, "another program runs by now")
				},
			}})
			result := p.Call(t.Context(), request("echo", `{"text":"a"}`)).Result
			got := result.Text()
			if result.Error != nil {
				got = result.Error.Message
			}
			if (result.Error == nil) != (tt.want == "") || result.Error != nil && result.Error.Code != tt.want || got != tt.wantText {
				t.Errorf("Call = %s, %v, want %s %s", result.Text(), result.Error, tt.want, tt.wantText)
			}
		})
	}
}

// TestReplacedForEver checks that a call starts again only a few times, and not at all if its
// tool is still the same.
func TestReplacedForEver(t *testing.T) {
	for _, tt := range []struct {
		name    string
		publish bool // before each refusal
		want    int
	}{{"a program that is always another", true, 3}, {"a program that is still the same", false, 1}} {
		c := newCatalog(t, echoSpec())
		refusals := 0
		p := newPipeline(t, pipeline.Options{Catalog: c, Runner: fakeRunner{refuse: func(string) error {
			refusals++
			if tt.publish {
				if err := c.Publish("test", fmt.Sprint(refusals), []tool.Spec{echoSpec()}); err != nil {
					return err
				}
			}
			return tool.Errorf(tool.Unavailable, "another program runs by now")
		}}})
		got := p.Call(t.Context(), request("echo", `{"text":"a"}`)).Result.Error
		if got == nil || got.Code != tool.Unavailable || got.Message != "another program runs by now" || refusals != tt.want {
			t.Errorf("%s: Call = %v after %d rounds, want the runner's words after %d", tt.name, got, refusals, tt.want)
		}
	}
}

func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t, pipeline.Options{
			Runner: fakeRunner{run: func(ctx context.Context, _ string, _ tool.Call, _ tool.Sink) (tool.Result, error) {
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}},
		}, echoSpec())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		outcome := p.Call(ctx, request("echo", `{"text":"a"}`))
		if got := outcome.Result.Error; got == nil || got.Code != tool.Canceled {
			t.Errorf("Call = %v, want %s", got, tool.Canceled)
		}
		if outcome.Duration != time.Second {
			t.Errorf("Duration = %v, want 1s", outcome.Duration)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	p := newPipeline(b, pipeline.Options{Runner: answer(tool.TextResult("ok"))}, echoSpec())
	req := request("echo", `{"text":"`+strings.Repeat("line of text\\n", 75)+`","times":3}`)
	b.SetBytes(int64(len(req.Arguments)))
	for b.Loop() {
		if outcome := p.Call(b.Context(), req); outcome.Result.Error != nil {
			b.Fatal(outcome.Result.Error)
		}
	}
}

func ExamplePipeline_Call() {
	c, err := catalog.New(catalog.Options{
		Plugins: []catalog.Plugin{{Name: "test", Ceiling: tool.ReadOnly}},
	})
	if err != nil {
		panic(err)
	}
	if err := c.Publish("test", "2c26b46b", []tool.Spec{echoSpec()}); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	p, err := openHost(context.Background(), dir, pipeline.Options{Catalog: c, Runner: fakeRunner{run: echo}})
	if err != nil {
		panic(err)
	}
	defer p.stop()
	for _, arguments := range []string{`{"text": "hi"}`, `{"txt": "hi"}`} {
		outcome := p.Call(context.Background(), pipeline.Request{Tool: "echo", Arguments: []byte(arguments)})
		if outcome.Result.Error != nil {
			fmt.Println(outcome.Result.Error.Message)
			continue
		}
		fmt.Println(outcome.Result.Text())
	}
	// Output:
	// {"text":"hi"}
	// missing required field 'text' in arguments; unknown field 'txt' in arguments, did you mean 'text'?
}
