package sdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The plugin that docs/plugins.md is about. TestGuide checks that every Go
// snippet there is a part of this file.

type countArgs struct {
	Path string `json:"path" jsonschema:"file to count" role:"path"`
	Unit string `json:"unit,omitempty" jsonschema:"what to count" enum:"lines,words" default:"lines"`
}

type countResult struct {
	Path  string `json:"path"`
	Count int    `json:"count" jsonschema:"how many there are"`
}

// Text implements sdk.Texter: the text for the model.
func (r countResult) Text() string { return fmt.Sprintf("%s: %d", r.Path, r.Count) }

func newCounter() *sdk.Plugin {
	p := sdk.New("count", "1.0.0")
	c := &counter{}
	sdk.Configure(p, c.configure)
	sdk.AddTool(p, tool.Spec{
		Name:        "count",
		Description: "Counts the lines or words of a text file. Returns the number.",
		Tier:        tool.ReadOnly,
		Idempotent:  true,
		MaxOutput:   4 * tool.KiB,
		Timeout:     10 * time.Second,
	}, c.count)
	sdk.AddToolWithPreview(p, tool.Spec{
		Name:        "reset_count",
		Description: "Forgets how many files were counted. Returns the number.",
		Tier:        tool.SideEffecting,
		TierWhen:    []tool.TierRule{{Property: "force", Tier: tool.Privileged}},
	}, c.reset, c.previewReset)
	sdk.AddPlanned(p, tool.Spec{
		Name:        "add_line",
		Description: "Adds a line at the end of a text file, which need not exist.",
		Tier:        tool.SideEffecting,
	}, c.planAddition)
	return p
}

type counter struct {
	shared  roots.Shared
	maxSize atomic.Int64
	counted atomic.Int64
}

type countSettings struct {
	MaxSize tool.ByteSize `json:"max_size,omitempty" jsonschema:"the largest file that is read" default:"1MiB"`
}

func (c *counter) configure(_ context.Context, _ sdk.Config, s countSettings) error {
	if s.MaxSize < tool.KiB {
		return &sdk.SettingError{Path: []string{"max_size"}, Summary: "max_size must be at least 1KiB"}
	}
	c.maxSize.Store(int64(s.MaxSize))
	return nil
}

func (c *counter) count(_ context.Context, call *sdk.Call, in countArgs) (countResult, error) {
	folders, err := roots.For(call, &c.shared)
	if err != nil {
		return countResult{}, err // a *tool.Error, written for a model
	}
	defer folders.Close()
	f, err := folders.Open(in.Path)
	if err != nil {
		return countResult{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return countResult{}, tool.Errorf(tool.Failed, "%s cannot be read", in.Path).WithCause(err)
	}
	if info.Size() > c.maxSize.Load() {
		return countResult{}, tool.Errorf(tool.ResourceExhausted, "%s is too large to count", in.Path).WithHint("name a smaller file")
	}
	scanner := bufio.NewScanner(f)
	if in.Unit == "words" {
		scanner.Split(bufio.ScanWords)
	}
	result := countResult{Path: in.Path}
	for scanner.Scan() {
		result.Count++
	}
	if scanner.Err() != nil {
		return countResult{}, tool.Errorf(tool.Failed, "%s is not a text file", in.Path).WithCause(scanner.Err())
	}
	c.counted.Add(1)
	return result, nil
}

type resetArgs struct {
	Force bool `json:"force,omitempty" jsonschema:"do not look at what was shown"`
}

func (c *counter) previewReset(context.Context, *sdk.Call, resetArgs) (tool.Preview, error) {
	n := c.counted.Load()
	return tool.Preview{Summary: fmt.Sprintf("Forgets %d counted files", n), Digest: fmt.Append(nil, n)}, nil
}

func (c *counter) reset(_ context.Context, call *sdk.Call, in resetArgs) (string, error) {
	n := c.counted.Load()
	shown := call.PreviewDigest()
	if shown != nil && !in.Force && string(shown) != fmt.Sprint(n) || !c.counted.CompareAndSwap(n, 0) {
		return "", tool.Errorf(tool.Conflict, "more files were counted meanwhile").WithHint("ask again")
	}
	return fmt.Sprintf("forgot %d files", n), nil
}

type addLineArgs struct {
	Path string `json:"path" jsonschema:"file to add the line to" role:"path"`
	Line string `json:"line" jsonschema:"the line"`
}

// addition is a line that is to be added to a file.
type addition struct {
	folders *roots.Roots
	file    *roots.Target
	unlock  func()
	line    string
}

func (c *counter) planAddition(ctx context.Context, call *sdk.Call, in addLineArgs) (sdk.Change[tool.Result], error) {
	folders, err := roots.For(call, &c.shared)
	if err != nil {
		return nil, err
	}
	a := &addition{folders: folders, line: in.Line}
	if err := a.open(ctx, in.Path); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// open refuses a change that cannot succeed, before a person is asked.
func (a *addition) open(ctx context.Context, path string) (err error) {
	if a.file, err = a.folders.Target(path, roots.TargetOptions{}); err != nil {
		return err
	}
	if a.unlock, err = a.folders.Lock(ctx, a.file); err != nil {
		return err
	}
	return a.file.Writable()
}

// State identifies everything that the change depends on.
func (a *addition) State(context.Context) (string, error) {
	info := a.file.Info()
	if info == nil {
		return "there is no " + a.file.Identity(), nil
	}
	return fmt.Sprintf("%s with %d bytes of %v", a.file.Identity(), info.Size(), info.ModTime()), nil
}

// Show is what the approver reads: a line, and details.
func (a *addition) Show(context.Context) (string, []tool.Content, error) {
	return fmt.Sprintf("Adds a line to %s", display.Name(a.file.String())), []tool.Content{tool.Text("+" + a.line + "\n")}, nil
}

// Apply makes the change, or fails without one.
func (a *addition) Apply(context.Context) (tool.Result, error) {
	if err := a.file.Write([]byte(a.line+"\n"), roots.WriteOptions{Append: true}); err != nil {
		return tool.Result{}, err
	}
	result := tool.TextResult(fmt.Sprintf("Added a line to %s", display.Name(a.file.String())))
	result.Effects = []tool.Effect{{Kind: "file.changed", Target: a.file.String(), Operation: "update"}}
	return result, nil
}

// Close is called at the end of the call.
func (a *addition) Close() {
	if a.unlock != nil {
		a.unlock()
	}
	if a.file != nil {
		a.file.Close()
	}
	_ = a.folders.Close() // the change is durable already
}

// TestAddLine shows that the guide's change is previewed, made once, and refused on another state.
func TestAddLine(t *testing.T) {
	workspace := t.TempDir()
	notes := filepath.Join(workspace, "notes.txt")
	running := sdktest.Start(t, newCounter(), sdktest.Options{Context: tool.Context{Roots: []string{workspace}}})
	in := addLineArgs{Path: "notes.txt", Line: "one"}
	shown, err := running.Preview(t.Context(), "add_line", in)
	if err != nil || shown.Summary != "Adds a line to notes.txt" || len(shown.Content) != 1 || string(shown.Content[0].Data) != "+one\n" {
		t.Fatalf("preview = %+v, %v", shown, err)
	}
	if _, err := os.Stat(notes); err == nil {
		t.Error("the preview has made the file")
	}
	call := tool.Call{Tool: "add_line", Arguments: json.RawMessage(`{"path":"notes.txt","line":"one"}`), Context: tool.Context{PreviewDigest: shown.Digest}}
	got := running.Run(t.Context(), call, tool.Sink{})
	if want := []tool.Effect{{Kind: "file.changed", Target: "notes.txt", Operation: "update"}}; got.Error != nil || !slices.Equal(got.Effects, want) {
		t.Errorf("the call = %+v, want the effects %+v", got, want)
	}
	if got := running.Run(t.Context(), call, tool.Sink{}); got.Error == nil || got.Error.Code != tool.Conflict {
		t.Errorf("the same call after the change = %+v, want code %q", got, tool.Conflict)
	}
	if text, err := os.ReadFile(notes); err != nil || string(text) != "one\n" {
		t.Errorf("the file holds %q, %v; want one line", text, err)
	}
	if got := running.Call(t.Context(), "add_line", addLineArgs{Path: "../notes.txt", Line: "two"}); got.Error == nil || got.Error.Code != tool.PermissionDenied {
		t.Errorf("a line outside of the workspace = %+v", got)
	}
	if _, err := running.Preview(t.Context(), "add_line", addLineArgs{Path: ".", Line: "two"}); err == nil {
		t.Error("a person would be asked about a line in a directory")
	}
}

type target struct {
	Cluster string `json:"cluster,omitempty" jsonschema:"where to deploy" enum:"test,live" default:"test"`
}

func deploy(ctx context.Context, call *sdk.Call, _ struct{}) (string, error) {
	var where target
	answered, err := call.AskUser(ctx, "Which cluster?", &where)
	if err != nil {
		return "", err
	}
	if !answered {
		return "nothing was deployed: the user declined", nil
	}
	return "deployed to " + where.Cluster, nil
}

// show executes a step of a command by its tree.
func show(ctx context.Context, call *sdk.Call, dir string) error {
	err := call.MayRun(ctx, tool.Execution{Argv: []string{"cat", "a.txt"}, Directory: dir})
	if err != nil {
		return err
	}
	return nil
}

var _ = show

func TestContract(t *testing.T) {
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "a.txt"), []byte("one two\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sdktest.Run(t, newCounter(), sdktest.Options{
		Context:  tool.Context{Roots: []string{workspace}},
		Settings: map[string]any{"max_size": "2KiB"},
		Calls:    []sdktest.Call{{Tool: "count", Args: countArgs{Path: "a.txt", Unit: "words"}}},
	})
}

// TestCounter shows that the plugin of the guide does what the guide says.
func TestCounter(t *testing.T) {
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "a.txt"), []byte("one two\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	running := sdktest.Start(t, newCounter(), sdktest.Options{Context: tool.Context{Roots: []string{workspace}}})
	for unit, want := range map[string]string{"lines": "a.txt: 2", "words": "a.txt: 3"} {
		if got := running.Call(t.Context(), "count", countArgs{Path: "a.txt", Unit: unit}); got.Text() != want {
			t.Errorf("count of %s = %q (%v), want %q", unit, got.Text(), got.Error, want)
		}
	}
	shown, err := running.Preview(t.Context(), "reset_count", nil)
	if err != nil || shown.Summary != "Forgets 2 counted files" {
		t.Errorf("preview = %q, %v", shown.Summary, err)
	}
	running.Call(t.Context(), "count", countArgs{Path: "a.txt"})
	stale := tool.Call{Tool: "reset_count", Context: tool.Context{PreviewDigest: shown.Digest}}
	if got := running.Run(t.Context(), stale, tool.Sink{}); got.Error == nil || got.Error.Code != tool.Conflict {
		t.Errorf("a reset after a preview that is out of date = %v, want code %q", got.Error, tool.Conflict)
	}
	if got := running.Call(t.Context(), "reset_count", nil).Text(); got != "forgot 3 files" {
		t.Errorf("reset = %q, want %q", got, "forgot 3 files")
	}
}

type sortArgs struct {
	Path string `json:"path" jsonschema:"file to sort" role:"path"`
}

func sortLines(ctx context.Context, call *sdk.Call, in sortArgs) (string, error) {
	result, err := proc.Run(ctx, proc.Command{
		Path:   "sort",
		Args:   []string{"--", in.Path},
		Dir:    call.Roots()[0],
		Limits: proc.Limits{CPUTime: 10 * time.Second, FileSize: 64 * tool.MiB},
	})
	switch {
	case err != nil:
		return "", err // it was not started: a *tool.Error if the call is at fault
	case result.TimedOut || result.Canceled:
		return "", ctx.Err()
	case result.ExitCode != 0:
		return "", tool.Errorf(tool.Failed, "Exit code: %d", result.ExitCode).WithHint("%s", result.Stderr)
	}
	return result.Stdout.String(), nil
}

// TestSortLines shows that the guide's command runs.
func TestSortLines(t *testing.T) {
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "a.txt"), []byte("b\na\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := sdk.New("lines", "1.0.0")
	sdk.AddTool(p, tool.Spec{Name: "sort_lines", Tier: tool.ReadOnly, Description: "Sorts the lines of a file."}, sortLines)
	running := sdktest.Start(t, p, sdktest.Options{Context: tool.Context{Roots: []string{workspace}}})
	if got := running.Call(t.Context(), "sort_lines", sortArgs{Path: "a.txt"}); got.Text() != "a\nb\n" {
		t.Errorf("sort_lines = %q (%v)", got.Text(), got.Error)
	}
	if got := running.Call(t.Context(), "sort_lines", sortArgs{Path: "none"}); got.Error == nil || !strings.HasPrefix(got.Error.Message, "Exit code: ") {
		t.Errorf("sort_lines of no file = %v", got.Error)
	}
}

// cache is what a plugin keeps for each session.
type cache struct{ forgotten []string }

func (c *cache) forget(session string) { c.forgotten = append(c.forgotten, session) }

// TestForget shows that the guide's function learns of the end of a session.
func TestForget(t *testing.T) {
	p, c := sdk.New("keeps", "1.0.0"), &cache{}
	sdk.AddTool(p, tool.Spec{Name: "sort_lines", Tier: tool.ReadOnly, Description: "Sorts the lines of a file."}, sortLines)
	p.OnSessionEnd(func(session string) { c.forget(session) }) // call.Session() of its calls
	running := sdktest.Start(t, p, sdktest.Options{})
	if err := running.EndSession(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	running.Close()
	if !slices.Equal(c.forgotten, []string{"one"}) {
		t.Errorf("what was kept for %q is forgotten, want that for one", c.forgotten)
	}
}

// TestDeploy shows the effect of the guide's question.
func TestDeploy(t *testing.T) {
	for _, tt := range []struct {
		answer any
		given  bool
		want   string
	}{
		{target{Cluster: "live"}, true, "deployed to live"},
		{struct{}{}, true, "deployed to test"}, // the default
		{nil, false, "nothing was deployed: the user declined"},
	} {
		p := sdk.New("ops", "1.0.0")
		sdk.AddTool(p, tool.Spec{Name: "deploy", Tier: tool.Privileged, Description: "Deploys where the user says."}, deploy)
		running := sdktest.Start(t, p, sdktest.Options{Answer: func(question string, _ json.RawMessage) (any, bool) {
			if question != "Which cluster?" {
				t.Errorf("the user is asked %q", question)
			}
			return tt.answer, tt.given
		}})
		if got := running.Call(t.Context(), "deploy", nil); got.Text() != tt.want {
			t.Errorf("deploy = %q (%v), want %q", got.Text(), got.Error, tt.want)
		}
	}
}

// TestGuide shows that the Go code of the guide is code that is tested here.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code := unindented(string(source))
	snippets := strings.Split(string(guide), "```go\n")[1:]
	if len(snippets) == 0 {
		t.Fatal("the guide has no Go code")
	}
	for _, rest := range snippets {
		snippet, _, closed := strings.Cut(rest, "```")
		if !closed {
			t.Errorf("a snippet does not end:\n%s", rest)
		}
		for part := range strings.SplitSeq(snippet, "\n\n") {
			if !strings.Contains(code, unindented(part)) {
				t.Errorf("a snippet of the guide is not in guide_test.go:\n%s", part)
			}
		}
	}
}

func unindented(code string) string {
	var lines strings.Builder
	for line := range strings.Lines(strings.TrimSpace(code)) {
		lines.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return lines.String()
}
