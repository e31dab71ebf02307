package pipeline_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestPartsJudgedInAdvance checks which parts of a line the host answers in advance: those
// that it would always allow, whatever happens to repositories and grants, if no link is in
// their paths.
func TestPartsJudgedInAdvance(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Mkdir(filepath.Join(root, "sub"), 0o755), os.Symlink("sub", filepath.Join(root, "way")),
		os.WriteFile(filepath.Join(root, "plain"), nil, 0o600), os.Symlink("plain", filepath.Join(root, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		line, cwd string
		want      []string
	}{
		{line: "echo hello", want: []string{"echo hello"}},
		{line: "cat plain | wc -l; ls none", want: []string{"cat plain", "wc -l", "ls none"}},
		{line: "cat plain 2>/dev/null", want: []string{"cat plain", ">/dev/null"}},
		{line: "while IFS= read -r l; do echo a; done < plain", want: []string{"read -r l", "'IFS=' read -r l", "echo a"}},
		{line: "ls", cwd: "sub", want: []string{"ls"}},
		{line: "ls", cwd: "way"},
		{line: "cat link; cat way/x; ls -I=link; cat plain", want: []string{"cat plain"}},
		{line: "ls *; cat $(ls); echo a", want: []string{"ls", "echo a"}},
		{line: "git status; env git status; echo a", want: []string{"echo a"}},
		{line: strings.Repeat("echo a; ", 30), want: strings.Split(strings.Repeat("echo a,", 15)+"echo a", ",")},
	} {
		var got []tool.Judged
		runner := fakeRunner{run: func(_ context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
			got = call.Judged
			return tool.TextResult("done"), nil
		}}
		h := newHost(t, pipeline.Options{Runner: runner, Roots: []string{root}, Policy: rules(t, policy.Options{Commands: lists()})}, commandSpec())
		arguments := map[string]any{"command": tt.line}
		dir := root
		if tt.cwd != "" {
			arguments["cwd"], dir = tt.cwd, filepath.Join(root, "sub")
		}
		text, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		if result := h.Call(t.Context(), request("run", string(text))).Result; result.Error != nil {
			t.Fatalf("%s: %v", tt.line, result.Error)
		}
		var judged []string
		for _, j := range got {
			shown := command.Join(append(slices.Clone(j.Environment), j.Argv...))
			if j.Argv == nil && j.Write {
				shown = ">" + j.File
			}
			judged = append(judged, shown)
			if j.Directory != dir || len(j.Unlinked) == 0 {
				t.Errorf("%s: %+v, want it in %s, with its paths", tt.line, j, dir)
			}
		}
		if diff := cmp.Diff(tt.want, judged); diff != "" {
			t.Errorf("%s (-want +judged in advance):\n%s", tt.line, diff)
		}
	}
}

// TestJudgedPaths checks that an answer in advance lists all paths that its part may name, and
// that a text gets no such answer.
func TestJudgedPaths(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var got []tool.Judged
	runner := fakeRunner{run: func(_ context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
		got = call.Judged
		return tool.TextResult("done"), nil
	}}
	call := func(text policy.Verdict) {
		t.Helper()
		lists := lists()
		lists.Text = text
		h := newHost(t, pipeline.Options{Runner: runner, Roots: []string{root}, Policy: rules(t, policy.Options{Commands: lists})}, commandSpec())
		if result := h.Call(t.Context(), request("run", `{"command":"ls --color=a -Ib sub/c"}`)).Result; result.Error != nil {
			t.Fatal(result.Error)
		}
	}
	call(0)
	if len(got) != 1 {
		t.Fatalf("judged in advance: %+v, want ls", got)
	}
	paths := strings.Join(got[0].Unlinked, "\n") + "\n"
	for _, name := range []string{"", "/--color=a", "/a", "/-Ib", "/b", "/sub/c"} {
		if !strings.Contains(paths, root+name+"\n") {
			t.Errorf("the paths of ls are %q, want %q among them", got[0].Unlinked, name)
		}
	}
	if call(policy.Allow); len(got) > 0 {
		t.Errorf("a text is judged in advance: %+v", got)
	}
}

// TestApplyOutlastsAnswers replaces the settings while a call runs: when Apply returns, the
// answers in advance by the old settings have ended.
func TestApplyOutlastsAnswers(t *testing.T) {
	t.Parallel()
	var h *host
	applied := func(call tool.Call) {
		h.Apply(pipeline.Settings{Policy: rules(t, policy.Options{})})
		if len(call.Judged) == 0 || call.JudgedUntil.IsZero() || time.Now().Before(call.JudgedUntil) {
			t.Errorf("after Apply at %v, %+v are answered until %v", time.Now(), call.Judged, call.JudgedUntil)
		}
	}
	runner := fakeRunner{run: func(_ context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
		applied(call)
		return tool.TextResult("done"), nil
	}}
	h = newHost(t, pipeline.Options{Runner: runner, Roots: []string{t.TempDir()}, Policy: rules(t, policy.Options{Commands: lists()})}, commandSpec())
	if result := h.Call(t.Context(), request("run", `{"command":"echo a"}`)).Result; result.Error != nil {
		t.Fatal(result.Error)
	}
}

// TestGrantedPartsAsk runs a command under a grant that is revoked while it runs: the granted
// part is not answered in advance, and is refused. The control revokes nothing.
func TestGrantedPartsAsk(t *testing.T) {
	t.Parallel()
	list := lists()
	list.AllowStanding = true
	root := t.TempDir()
	var h *host
	revoke := false
	runner := fakeRunner{run: func(ctx context.Context, _ string, call tool.Call, sink tool.Sink) (tool.Result, error) {
		for _, j := range call.Judged {
			if j.Argv[0] == "make" {
				t.Errorf("a granted part is answered in advance: %+v", j)
			}
		}
		grants, err := h.opts.Grants.List(ctx, approver, false)
		if err != nil || len(grants) > 1 {
			t.Errorf("the grants are %v, %v", grants, err)
		}
		for _, grant := range grants {
			if !revoke {
				break
			}
			if _, err := h.opts.Grants.Revoke(ctx, grant.ID, approver); err != nil {
				t.Error(err)
			}
		}
		if len(call.CommandTree) > 0 {
			if err := sink.MayRun(tool.Execution{Argv: []string{"make"}, Directory: root}); err != nil {
				return tool.ErrorResult(err), nil
			}
		}
		return tool.TextResult("done"), nil
	}}
	h = newHost(t, pipeline.Options{Runner: runner, Roots: []string{root}, Policy: rules(t, policy.Options{Commands: list})}, commandSpec())
	f, question := h.begin(t, request("run", `{"command":"echo a; make"}`))
	decision := approval.Decision{ID: question.ID, By: approver, Approve: true, Grant: &approval.Terms{}, Via: "test"}
	if _, err := h.opts.Approvals.Decide(t.Context(), seeing(question, decision)); err != nil {
		t.Fatal(err)
	}
	f.Wait(t.Context(), operation.Forever)
	if result := h.Call(t.Context(), request("run", `{"command":"echo b; make"}`)).Result; result.Error != nil {
		t.Fatalf("control: %v", result.Error)
	}
	revoke = true
	result := h.Call(t.Context(), request("run", `{"command":"echo c; make"}`)).Result
	if result.Error == nil || result.Error.Message != "this needs approval: make" {
		t.Errorf("a part whose grant was revoked: %v", result.Error)
	}
}
