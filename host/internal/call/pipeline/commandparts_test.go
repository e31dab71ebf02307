package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// commandSpec is a tool that executes commands by their trees.
func commandSpec() tool.Spec {
	spec := echoSpec()
	spec.Name, spec.Aliases, spec.Tier, spec.TierWhen, spec.CommandTree = "run", nil, tool.Privileged, nil, true
	spec.InputSchema = json.RawMessage(`{"type":"object","properties":{
		"command":{"type":"string","description":"what to run","x-role":"command"},
		"argv":{"type":"array","description":"or this","items":{"type":"string"},"x-role":"argv"},
		"env":{"type":"array","description":"variables","items":{"type":"string","x-role":"command"}},
		"stdin":{"type":"string","description":"input","x-role":"script"},
		"cwd":{"type":"string","description":"where","x-role":"path"}}}`)
	return spec
}

// lists returns a short version of the default configuration's lists.
func lists() *policy.Commands {
	list := &policy.Commands{WriteRedirects: []string{"/dev/null"}}
	for _, allowed := range []string{"ls", "cat", "echo", "wc", "git status", "read", "bash", "bash build.sh"} {
		list.Allow = append(list.Allow, policy.CommandRule{Words: strings.Fields(allowed)})
	}
	list.Deny = []policy.CommandRule{{Words: []string{"sudo"}}}
	return list
}

// parts is a plugin that asks to execute the given parts, whatever the command is, and returns
// the host's answers.
func parts(list ...tool.Execution) fakeRunner {
	return fakeRunner{run: func(_ context.Context, _ string, call tool.Call, sink tool.Sink) (tool.Result, error) {
		if len(call.CommandTree) == 0 {
			return tool.TextResult("text"), nil
		}
		var said []string
		for _, e := range list {
			if err := sink.MayRun(e); err != nil {
				return tool.ErrorResult(err), nil
			}
			said = append(said, "runs")
		}
		return tool.TextResult(strings.Join(said, " ")), nil
	}}
}

// TestExecutionIsJudged checks that the policy decides about each program when it executes,
// even after it allowed the whole line.
func TestExecutionIsJudged(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	for _, err := range []error{os.Symlink(root, link), os.WriteFile(filepath.Join(root, ".env"), nil, 0o600), os.Symlink(".env", filepath.Join(root, "harmless")), os.Mkdir(filepath.Join(root, "sub"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	in := func(argv ...string) tool.Execution { return tool.Execution{Argv: argv, Directory: root} }
	for _, tt := range []struct {
		part tool.Execution
		want string // the error; "" if the part runs
	}{
		{part: in("ls", "-l")},
		{part: in("cat", "*.go", "$(touch f)")},
		{part: tool.Execution{Argv: []string{"cat", "a"}, Directory: filepath.Join(root, "sub")}},
		{part: tool.Execution{Directory: root, File: filepath.Join(root, "a")}},
		{part: tool.Execution{Directory: root, File: "/dev/null", Write: true}},

		{in("touch", "f"), "this needs approval: touch f"},
		{in("sudo", "ls"), "Security policy violation: sudo is denied"},
		{in("env", "sudo", "ls"), "Security policy violation: sudo is denied"},
		{in("cat", ".env"), "this needs approval: cat .env"},
		{in("cat", "harmless"), "this needs approval: cat harmless"},
		{in("cat", root+"/../x"), "this needs approval: cat "},
		{in("bash"), "this needs approval: bash"},
		{in("./ls"), "this needs approval: ./ls"},
		{in("bash", "-c", "ls"), "this needs approval: bash -c ls"},
		{in("find", ".", "-delete"), "this needs approval: find . -delete"},
		{tool.Execution{Argv: []string{"ls"}, Environment: []string{"LD_PRELOAD=x"}, Directory: root}, "this needs approval: 'LD_PRELOAD=x' ls"},
		{tool.Execution{Argv: []string{"cat", "passwd"}, Directory: "/etc"}, "this needs approval: cat passwd"},
		{tool.Execution{Argv: []string{"cat", "a"}, Directory: "relative"}, "this needs approval: cat a"},
		{tool.Execution{Directory: root, File: filepath.Join(root, ".env")}, "this needs approval: reading "},
		{tool.Execution{Directory: root, File: "/etc/passwd"}, "this needs approval: reading /etc/passwd"},
		{tool.Execution{Directory: root, File: filepath.Join(root, "a"), Write: true}, "this needs approval: writing "},
	} {
		for _, spelled := range []string{root, link} {
			h := newHost(t, pipeline.Options{Runner: parts(tt.part), Roots: []string{spelled}, Policy: rules(t, policy.Options{Commands: lists()})}, commandSpec())
			result := h.Call(t.Context(), request("run", `{"command":"echo a"}`)).Result
			got := ""
			if result.Error != nil {
				got = result.Error.Message
			}
			if (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
				t.Errorf("below %s, %+v: %q, want %q", spelled, tt.part, got, tt.want)
			}
		}
	}
}

// TestRefusedPartAsksForTheWhole repeats a command after one of its parts was refused: the
// host asks about the whole command, which then runs as text.
func TestRefusedPartAsksForTheWhole(t *testing.T) {
	h := newHost(t, pipeline.Options{
		Runner: parts(tool.Execution{Argv: []string{"touch", "f"}, Directory: "/ws"}), Roots: []string{"/ws"}, Policy: rules(t, policy.Options{Commands: lists()}),
	}, commandSpec())
	req := request("run", `{"command":"echo a"}`)
	result := h.Call(t.Context(), req).Result
	if result.Error == nil || result.Error.Code != tool.PermissionDenied || !strings.Contains(result.Error.Hint, "Make the same call again") {
		t.Fatalf("the part was not refused: %+v", result)
	}
	other := req
	other.Caller.User = "bea"
	if result := h.Call(t.Context(), other).Result; result.Error == nil || result.Error.Message != "this needs approval: touch f" {
		t.Errorf("another user's call: %+v", result)
	}
	f, question := h.begin(t, req)
	if want := "a part of the command that was refused when it ran: touch f"; question.Rule != want {
		t.Errorf("the question is by %q, want %q", question.Rule, want)
	}
	h.answer(t, question.ID, true)
	if outcome := f.Wait(t.Context(), operation.Forever); outcome.Result.Text() != "text" {
		t.Errorf("the approved call: %+v, want its text to be read", outcome.Result)
	}
}

// TestTextsAreAskedAbout checks that no shell receives an unapproved text unless the
// configuration allows it.
func TestTextsAreAskedAbout(t *testing.T) {
	plain := commandSpec()
	plain.CommandTree = false
	long := fmt.Sprintf(`{"command":"echo %s"}`, strings.Repeat("a ", command.MaxTree/2))
	for _, tt := range []struct {
		name      string
		spec      tool.Spec
		arguments string
		mode      policy.Mode
		text      policy.Verdict
		want      string // what runs; "" if a person is asked
	}{
		{"by its tree", commandSpec(), `{"command":"echo a"}`, policy.Supervised, 0, "runs"},
		{"a tool without", plain, `{"command":"echo a"}`, policy.Supervised, 0, ""},
		{"a tool without, autonomous", plain, `{"command":"echo a"}`, policy.Autonomous, 0, ""},
		{"a tool without, allowed", plain, `{"command":"echo a"}`, policy.Supervised, policy.Allow, "text"},
		{"by its text, allowed", commandSpec(), `{"command":"echo a"}`, policy.Supervised, policy.Allow, "text"},
		{"a long one", commandSpec(), long, policy.Supervised, 0, ""},
		{"what only bash does", commandSpec(), `{"command":"select x in a; do echo; done"}`, policy.Autonomous, 0, ""},
		{"a shell with arguments", commandSpec(), `{"command":"bash build.sh"}`, policy.Supervised, 0, "runs"},
		{"a shell that reads a here-string", commandSpec(), `{"command":"bash <<< 'touch f'"}`, policy.Autonomous, 0, ""},
		{"a shell that reads a pipe", commandSpec(), `{"command":"echo touch f | bash"}`, policy.Autonomous, 0, ""},
		{"a shell that reads a file", commandSpec(), `{"command":"bash -e < a"}`, policy.Autonomous, 0, ""},
		{"input", commandSpec(), `{"command":"cat","stdin":"a"}`, policy.Autonomous, 0, ""},
		{"arguments", plain, `{"argv":["echo","a"]}`, policy.Supervised, 0, "text"},
		{"a command and variables", commandSpec(), `{"command":"echo a","env":["a=b"]}`, policy.Supervised, 0, ""},
		{"autonomous", commandSpec(), `{"command":"mkdir a"}`, policy.Autonomous, 0, "runs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lists := lists()
			lists.Text = tt.text
			h := newHost(t, pipeline.Options{
				Runner: parts(tool.Execution{Argv: []string{"echo", "a"}, Directory: "/ws"}), Roots: []string{"/ws"}, Policy: rules(t, policy.Options{Commands: lists, Mode: tt.mode}),
			}, tt.spec)
			if tt.want == "" {
				h.begin(t, request("run", tt.arguments))
				return
			}
			if result := h.Call(t.Context(), request("run", tt.arguments)).Result; result.Text() != tt.want {
				t.Errorf("%s gives %+v, want %q", tt.arguments, result, tt.want)
			}
		})
	}
}

// TestDeferredParts checks that a read-only line needs no approval just because some of its
// words are unknown until it runs: the host decides about each part then.
func TestDeferredParts(t *testing.T) {
	for _, tt := range []struct {
		mode       policy.Mode
		line, want string
	}{
		{line: `for f in *; do cat "$f"; done`, want: "runs runs"},
		{line: `cat $(ls *.go)`, want: "runs runs"},
		{line: `cat .env*`},
		{line: `sudo $x`, want: "denied"},
		{line: `touch a; cat $x`},
		{mode: policy.Autonomous, line: `touch a; cat $x`},
		{mode: policy.Autonomous, line: `for f in *; do cat "$f"; done`, want: "runs runs"},
	} {
		h := newHost(t, pipeline.Options{
			Runner: parts(tool.Execution{Argv: []string{"ls"}, Directory: "/ws"}, tool.Execution{Argv: []string{"cat", "a"}, Directory: "/ws"}),
			Roots:  []string{"/ws"}, Policy: rules(t, policy.Options{Mode: tt.mode, Commands: lists()}),
		}, commandSpec())
		req := request("run", fmt.Sprintf(`{"command":%q}`, tt.line))
		explained, err := h.Explain(req)
		if err != nil {
			t.Fatal(err)
		}
		if tt.want == "" {
			if explained.Verdict != policy.Ask && explained.Verdict != policy.Confirm {
				t.Errorf("mode %v, %s: %v, want it asked about", tt.mode, tt.line, explained.Verdict)
			}
			continue
		}
		result := h.Call(t.Context(), req).Result
		if got := result.Text(); got != tt.want && (tt.want != "denied" || result.Error == nil || explained.Verdict != policy.Deny) {
			t.Errorf("mode %v, %s: %q (explained: %v), want %q", tt.mode, tt.line, got, explained.Verdict, tt.want)
		}
	}
}

// BenchmarkMayRun decides about parts of an allowed command, in the host alone.
func BenchmarkMayRun(b *testing.B) {
	root := b.TempDir()
	took := []time.Duration{}
	runner := fakeRunner{run: func(_ context.Context, _ string, _ tool.Call, sink tool.Sink) (tool.Result, error) {
		for b.Loop() {
			begun := time.Now()
			if err := sink.MayRun(tool.Execution{Argv: []string{"cat", "-n", "a.go", "src/b.go"}, Directory: root}); err != nil {
				b.Error(err)
			}
			took = append(took, time.Since(begun))
		}
		return tool.TextResult("done"), nil
	}}
	h := newHost(b, pipeline.Options{Runner: runner, Roots: []string{root}, Policy: rules(b, policy.Options{Commands: lists()})}, commandSpec())
	if result := h.Call(b.Context(), request("run", `{"command":"echo a"}`)).Result; result.Error != nil {
		b.Fatal(result.Error)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*95/100].Nanoseconds())/1000, "p95-µs/part")
}
