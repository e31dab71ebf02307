package pipeline_test

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestBrokenClaim: the failure of a call that claims to be read_only and could change nothing tells the
// model and the administrator of it, if the failure says so in words that are not the caller's.
func TestBrokenClaim(t *testing.T) {
	t.Parallel()
	failed := func(text string) tool.Result { return tool.ErrorResult(tool.Errorf(tool.Failed, "%s", text)) }
	hinted := tool.ErrorResult(tool.Errorf(tool.Failed, "open a: read-only file system").WithHint("try b"))
	inText := failed("it failed")
	inText.Content = []tool.Content{tool.Text("Error: EROFS: read-only file system, open 'a'")}
	for _, tt := range []struct {
		name, arguments string
		result          tool.Result
		trusted         bool
		sign            string
	}{
		{name: "a result", result: tool.TextResult("read-only file system")},
		{name: "another failure", result: failed("no such file")},
		{name: "a refused write", result: failed("open a: read-only file system"), sign: "read-only file system"},
		{name: "in capitals", result: failed("Read-Only File System"), sign: "read-only file system"},
		{name: "in the text", result: inText, sign: "read-only file system"},
		{name: "the name of the error", result: failed("mkdir: EROFS"), sign: "erofs"},
		{name: "a permission", result: failed("connect: Permission denied"), sign: "permission denied"},
		{name: "the surest sign", result: failed("EACCES: read-only file system"), sign: "read-only file system"},
		{name: "a hint of the tool", result: hinted, sign: "read-only file system"},
		{name: "the words of the caller", arguments: `{"text":"Permission denied"}`, result: failed("open Permission denied: no such file")},
		{name: "a call of another tier", arguments: `{"text":"a","create":"b"}`, result: failed("open a: read-only file system")},
		{name: "a plugin without split tiers", result: failed("open a: read-only file system"), trusted: true},
		{name: "a long failure", result: failed(strings.Repeat("x", 1<<20) + "erofs")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{{Name: "test", Ceiling: tool.SideEffecting, SplitTiers: !tt.trusted, TrustClaims: tt.trusted}}})
			if err == nil {
				err = c.Publish("test", "old", []tool.Spec{echoSpec()})
			}
			if err != nil {
				t.Fatal(err)
			}
			var noted []string
			h := newHost(t, pipeline.Options{
				Catalog: c, Runner: answer(tt.result), Policy: rules(t, policy.Options{Mode: policy.Autonomous}),
				BrokenClaim: func(plugin, tool, sign string) { noted = append(noted, plugin+" "+tool+" "+sign) },
			})
			events := h.opts.Events.Subscribe("")
			if tt.arguments == "" {
				tt.arguments = `{"text":"a"}`
			}
			outcome := h.Call(t.Context(), request("echo", tt.arguments))
			var published []string
			for {
				e, err := events.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if d, ok := e.Data.(event.BrokenClaim); ok && e.User == "" && d.ID == outcome.ID {
					published = append(published, d.Plugin+" "+d.Tool+" "+d.Sign)
				}
				if e.Kind == event.KindToolResult {
					break
				}
			}
			var want []string
			if tt.sign != "" {
				want = []string{"test echo " + tt.sign}
			}
			if strings.Join(noted, "\n") != strings.Join(want, "\n") || strings.Join(published, "\n") != strings.Join(want, "\n") {
				t.Errorf("noted %q and published %q, want %q", noted, published, want)
			}
			rows := 1
			if strings.Contains(tt.arguments, "create") {
				rows = 2
			}
			row := h.rows(t, outcome.ID, rows)[rows-1]
			if row.BrokenClaim != tt.sign {
				t.Errorf("the journal has %q, want %q", row.BrokenClaim, tt.sign)
			}
			if failure := outcome.Result.Error; failure != nil {
				if told := strings.Contains(failure.Hint, "echo claims to be read_only"); told != (tt.sign != "") {
					t.Errorf("the hint is %q", failure.Hint)
				}
				if tt.name == "a hint of the tool" && !strings.HasPrefix(failure.Hint, "try b; ") {
					t.Errorf("the hint is %q, want the tool's own first", failure.Hint)
				}
			}
		})
	}
}
