package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// gated is a plugin whose calls run until the test releases them. Their arguments identify
// them.
type gated struct {
	inside  map[string]bool // needs no lock: read when all goroutines of the bubble wait
	release map[string]chan struct{}
	entered chan string
}

func (h *gated) Run(ctx context.Context, _, _ string, call tool.Call, _ tool.Sink) (tool.Result, bool, error) {
	name := call.Tool + string(call.Arguments)
	h.entered <- name
	select {
	case <-h.release[name]:
		return tool.TextResult("done"), true, nil
	case <-ctx.Done():
		return tool.Result{}, true, ctx.Err()
	}
}

// Preview implements [pipeline.Runner].
func (h *gated) Preview(context.Context, string, string, tool.Call) (tool.Preview, error) {
	return tool.Preview{}, nil
}

// now returns the calls that are inside the plugin once all goroutines wait.
func (h *gated) now() []string {
	synctest.Wait()
	for {
		select {
		case name := <-h.entered:
			h.inside[name] = true
		default:
			var names []string
			for name := range h.inside {
				names = append(names, name)
			}
			slices.Sort(names)
			return names
		}
	}
}

// changing returns tools that change something, with arguments of all roles.
func changing() []tool.Spec {
	spec := func(name, properties string) tool.Spec {
		return tool.Spec{
			Name: name, Description: "Changes something.", Tier: tool.SideEffecting,
			InputSchema: json.RawMessage(`{"type":"object","properties":{` + properties + `}}`),
		}
	}
	property := func(name, role string) string {
		return fmt.Sprintf(`%q:{"type":"string","description":"any","x-role":%q}`, name, role)
	}
	look := spec("look", property("path", "path"))
	look.Tier = tool.ReadOnly
	return []tool.Spec{
		spec("edit", property("path", "path")), look,
		spec("run", property("command", "command")+","+property("cwd", "path")),
		spec("type", property("input", "script")),
		spec("save", `"text":{"type":"string","description":"any"}`),
		spec("commit", property("path", "repository")+","+property("file", "path")),
	}
}

// allow approves a call if it asks.
func (h *host) allow(t *testing.T, f *operation.Operation) {
	t.Helper()
	synctest.Wait()
	if f.Info().State == operation.AwaitingApproval {
		h.answer(t, h.nextQuestion(t).ID, true)
	}
}

// TestOrder starts two calls, the second while the first one runs, in one session and in two.
// The second must wait if and only if it touches what the first one does.
func TestOrder(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"repo/.git", "repo/sub", "other/.git", "real"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	const no, session, always = "no", "session", "always"
	for _, tt := range []struct{ first, second, waits string }{
		{`edit{"path":"a"}`, `edit{"path":"a"}`, always},
		{`edit{"path":"a"}`, `edit{"path":"./x/../a"}`, always},
		{`edit{"path":"a"}`, `edit{"path":"b"}`, no},
		{`edit{"path":"a"}`, `edit{"path":"ab"}`, no},
		{`edit{"path":"d"}`, `edit{"path":"d/a"}`, always},
		{`edit{"path":"d/a"}`, `edit{"path":"d"}`, always},
		{`edit{"path":"link/a"}`, `edit{"path":"real/a"}`, always},
		{`edit{"path":"a"}`, `look{"path":"a"}`, no},
		{`run{"command":"sleep 1","cwd":"d"}`, `run{"command":"sleep 2","cwd":"d"}`, no},
		{`edit{"path":"a"}`, `run{"command":"sleep 1"}`, session},
		{`run{"command":"sleep 1"}`, `edit{"path":"a"}`, session},
		{`run{"command":"sleep 1"}`, `commit{"path":"repo"}`, session},
		{`type{"input":"ls"}`, `type{"input":"pwd"}`, session},
		{`type{"input":"ls"}`, `run{"command":"sleep 1"}`, no},
		{`type{"input":"ls"}`, `edit{"path":"a"}`, session},
		{`save{"text":"a"}`, `save{"text":"b"}`, no},
		{`save{"text":"a"}`, `run{"command":"sleep 1"}`, no},
		{`commit{"path":"repo"}`, `commit{"path":"repo/sub"}`, always},
		{`commit{"file":"repo/a"}`, `commit{"file":"repo/sub/b"}`, always},
		{`commit{"path":"repo"}`, `commit{"path":"other"}`, no},
		{`commit{}`, `commit{"path":"."}`, always},
		{`edit{"path":"repo/a"}`, `commit{"path":"repo"}`, session},
		{`edit{"path":"other/a"}`, `commit{"path":"repo"}`, no},
	} {
		for _, same := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, %s, one session %t", tt.first, tt.second, same), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					plugin := &gated{inside: map[string]bool{}, release: map[string]chan struct{}{}, entered: make(chan string, 10)}
					h := newHost(t, pipeline.Options{Runner: plugin, Roots: []string{root}, Policy: rules(t, policy.Options{Mode: policy.Autonomous})}, changing()...)
					start := func(call, session string) (*operation.Operation, string) {
						name, arguments, _ := strings.Cut(call, "{")
						req := request(name, "{"+arguments)
						req.Caller.Session = session
						if plugin.release[call] == nil {
							plugin.release[call] = make(chan struct{})
						}
						f := h.Start(t.Context(), req)
						t.Cleanup(f.Release)
						h.allow(t, f)
						return f, call
					}
					first, one := start(tt.first, "s1")
					plugin.now()
					sessionOfSecond := map[bool]string{true: "s1", false: "s2"}[same]
					second, _ := start(tt.second, sessionOfSecond)
					plugin.now()
					want := tt.waits == always || tt.waits == session && same
					info := second.Info()
					if got := info.State == operation.Queued; got != want {
						t.Fatalf("the second call is %s, want that it waits: %t", info.State, want)
					}
					if want && info.WaitsFor != first.ID() {
						t.Errorf("the second call waits for %q, want %s", info.WaitsFor, first.ID())
					}
					close(plugin.release[one])
					plugin.now()
					// With the same arguments, the second call has ended too.
					if got := second.Info(); got.State == operation.Queued || got.WaitsFor != "" {
						t.Errorf("when the first call has ended, the second is %+v; want that it runs", got)
					}
					second.Cancel()
				})
			})
		}
	}
}

// TestCommandsRunTogether runs four commands of one session: the plugin runs all at the same
// time.
func TestCommandsRunTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := &gated{inside: map[string]bool{}, release: map[string]chan struct{}{}, entered: make(chan string, 10)}
		h := newHost(t, pipeline.Options{Runner: plugin, Policy: rules(t, policy.Options{Mode: policy.Autonomous})}, changing()...)
		for i := range 4 {
			f := h.Start(t.Context(), request("run", fmt.Sprintf(`{"command":"sleep %d"}`, i+1)))
			defer f.Release()
			defer f.Cancel()
			h.allow(t, f)
		}
		if got := plugin.now(); len(got) != 4 {
			t.Errorf("%q run at the same time, want four commands", got)
		}
	})
}

// TestQueuedCallSaysWhy reads the reports of a call that waits for another. They name the
// other call's id only if it belongs to the same session.
func TestQueuedCallSaysWhy(t *testing.T) {
	for session, want := range map[string]string{
		"s1": "edit waits for its turn: edit (%s) runs first",
		"s2": "edit waits for its turn: a call of edit in another session runs first",
	} {
		t.Run(session, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plugin := &gated{inside: map[string]bool{}, release: map[string]chan struct{}{}, entered: make(chan string, 10)}
				h := newHost(t, pipeline.Options{Runner: plugin, Roots: []string{"/work"}, Policy: rules(t, policy.Options{Mode: policy.Autonomous})}, changing()...)
				first := h.Start(t.Context(), request("edit", `{"path":"a"}`))
				defer first.Release()
				defer first.Cancel()
				plugin.now()
				var said []tool.Progress
				req := request("edit", `{"path":"a"}`)
				req.Caller.Session, req.Sink.Progress = session, func(p tool.Progress) { said = append(said, p) }
				second := h.Start(t.Context(), req)
				plugin.now()
				if strings.Contains(want, "%s") {
					want = fmt.Sprintf(want, first.ID())
				}
				if len(said) == 0 || said[0].Message != want {
					t.Errorf("the call says %+v, want %q", said, want)
				}
				second.Cancel()
				second.Release()
			})
		})
	}
}

// TestCanceledTurn cancels a running call and one that waits behind it: then the third runs.
func TestCanceledTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := &gated{inside: map[string]bool{}, release: map[string]chan struct{}{}, entered: make(chan string, 10)}
		h := newHost(t, pipeline.Options{Runner: plugin, Roots: []string{"/work"}, Policy: rules(t, policy.Options{Mode: policy.Autonomous})}, changing()...)
		var calls [3]*operation.Operation
		for i := range calls {
			calls[i] = h.Start(t.Context(), request("edit", `{"path":"a"}`))
			defer calls[i].Release()
			plugin.now()
		}
		calls[1].Cancel()
		plugin.now()
		if got := calls[2].Info(); got.State != operation.Queued || got.WaitsFor != calls[0].ID() {
			t.Errorf("the third call is %+v, want that it waits for the first", got)
		}
		calls[0].Cancel()
		plugin.now()
		if got := calls[2].Info().State; got != operation.Running {
			t.Errorf("the third call is %s, want that it runs", got)
		}
		calls[2].Cancel()
		synctest.Wait()
	})
}

// TestTurnHasABound has a call wait behind one that does not end.
func TestTurnHasABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		specs := changing()
		for i := range specs {
			specs[i].Timeout = 10 * time.Minute
		}
		plugin := &gated{inside: map[string]bool{}, release: map[string]chan struct{}{}, entered: make(chan string, 10)}
		h := newHost(t, pipeline.Options{Runner: plugin, Roots: []string{"/work"}, Keep: time.Minute, Policy: rules(t, policy.Options{Mode: policy.Autonomous})}, specs...)
		first := h.Start(t.Context(), request("edit", `{"path":"a"}`))
		defer first.Release()
		defer first.Cancel()
		plugin.now()
		got := h.Call(t.Context(), request("edit", `{"path":"a"}`)).Result.Error
		if got == nil || got.Code != tool.Unavailable || !strings.Contains(got.Message, "waited 1m0s for its turn") {
			t.Errorf("the call ended with %v, want that it waited too long", got)
		}
	})
}

// TestThousandCalls makes a thousand calls at the same time. On one file they run one after
// another, and only a bounded number may wait; on a thousand files they wait only for the
// plugin. Afterwards, a further call runs at once.
func TestThousandCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		path             string
		wantMost, wantOK int
	}{"one file": {"a", 1, 257}, "as many files": {"a%d", 64, 64 + 256}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plugin := &slow{}
				p := newPipeline(t, pipeline.Options{Runner: plugin, Roots: []string{"/work"}, Policy: rules(t, policy.Options{Mode: policy.Autonomous})}, changing()...)
				edit := func(path string) *tool.Error {
					return p.Call(t.Context(), request("edit", fmt.Sprintf(`{"path":%q}`, path))).Result.Error
				}
				var mu sync.Mutex // guards ends
				ends := map[tool.Code]int{}
				var calls sync.WaitGroup
				for i := range 1000 {
					path := strings.Replace(tt.path, "%d", fmt.Sprint(i), 1)
					calls.Go(func() { // ends with its call; calls.Wait waits for it
						failure := edit(path)
						mu.Lock()
						defer mu.Unlock()
						if failure == nil {
							ends[""]++
							return
						}
						ends[failure.Code]++
					})
				}
				calls.Wait()
				if plugin.most != tt.wantMost || ends[""] != tt.wantOK || ends[tool.ResourceExhausted] != 1000-tt.wantOK {
					t.Errorf("%d ran at the same time, and they ended with %v; want %d, and %d with success", plugin.most, ends, tt.wantMost, tt.wantOK)
				}
				if failure := edit("a"); failure != nil {
					t.Errorf("a further call ended with %v", failure)
				}
			})
		})
	}
}
