package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/relay"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestMain makes this binary the launcher and the plugin of its own tests.
func TestMain(m *testing.M) {
	if os.Getenv("TOOLHOST_PLUGIN") != "" {
		if filepath.Base(os.Args[0]) == "own" {
			newOwn().Serve()
		}
		newPlugin().Serve()
	}
	syscall.Umask(0o022) // others must not be able to write these directories
	goleak.VerifyTestMain(m)
}

type settings struct {
	Greeting string `json:"greeting,omitempty" jsonschema:"how to greet" default:"Hello"`
}

type args struct {
	Name string `json:"name" jsonschema:"whom to greet"`
}

// newPlugin returns a plugin with one tool that names the caller, and one tool that cannot be
// offered.
func newPlugin() *sdk.Plugin {
	p := sdk.New("greeter", "1.0.0")
	var s settings
	sdk.Configure(p, func(_ context.Context, _ sdk.Config, given settings) error {
		s = given
		return nil
	})
	sdk.AddTool(p, tool.Spec{Name: "greet", Tier: tool.ReadOnly, Description: "Greets."},
		func(_ context.Context, c *sdk.Call, in args) (string, error) {
			return fmt.Sprintf("%s, %s! From %s.", s.Greeting, in.Name, c.User()), nil
		})
	sdk.AddTool(p, tool.Spec{Name: "change", Tier: tool.SideEffecting, Description: "Changes something."},
		func(context.Context, *sdk.Call, args) (string, error) { return "changed", nil })
	return p
}

// newOwn returns a plugin with one tool that tells its session.
func newOwn() *sdk.Plugin {
	p := sdk.New("own", "1.0.0")
	sdk.AddTool(p, tool.Spec{Name: "own", Tier: tool.ReadOnly, Description: "Tells the session."},
		func(_ context.Context, c *sdk.Call, _ args) (string, error) { return c.Session(), nil })
	return p
}

// load writes a configuration with the plugin under the given settings, and
// loads it.
func load(t *testing.T, pluginConfig string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.Mkdir(filepath.Join(dir, "ws"), 0o755),
		os.Mkdir(filepath.Join(dir, "bin"), 0o755),
		os.Link(self, filepath.Join(dir, "bin", "greeter")),
		os.Link(self, filepath.Join(dir, "bin", "own")),
		os.Chmod(self, 0o755), // go build follows the user's umask
	); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.hcl")
	text := `
workspace  = "ws"
state_dir  = "state"
plugin_dir = "bin"
auth { local_user = "ada" }

plugin "greeter" {
  tier   = "privileged"
  claims = "trust"
  config {
    ` + pluginConfig + `
  }
}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, config.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// build builds a daemon.
func build(t *testing.T, cfg *config.Config) *daemon.Daemon {
	t.Helper()
	d, err := daemon.New(t.Context(), daemon.Options{
		Config: cfg, Version: "1", Logger: hclog.NewNullLogger(),
		Load: func() (*config.Config, error) { return config.Load(cfg.Files[0], config.LoadOptions{}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// running is a daemon that serves its control socket.
type running struct {
	*daemon.Daemon

	agent, approver *client.Client
}

// start builds and starts a daemon, and connects to it.
func start(t *testing.T, cfg *config.Config) *running {
	t.Helper()
	d := &running{Daemon: build(t, cfg)}
	if err := errors.Join(d.ServeControl(t.Context()), d.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	key, err := auth.ReadKey(filepath.Join(cfg.StateDir, auth.ApproverKey))
	if err != nil {
		t.Fatal(err)
	}
	connect := func(token string) *client.Client {
		c, err := client.New(client.Options{StateDir: cfg.StateDir, Token: token, Name: "test"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	d.agent, d.approver = connect(""), connect(key)
	return d
}

// call makes a call and waits for its end.
func (d *running) call(t *testing.T, name, arguments string) client.Outcome {
	t.Helper()
	outcome, err := d.agent.Call(t.Context(), client.Call{Tool: name, Arguments: []byte(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func TestCall(t *testing.T) {
	d := start(t, load(t, `greeting = "Good morning"`))
	outcome := d.call(t, "greet", `{"name":"Bob"}`)
	if outcome.Result == nil || outcome.Result.Content != "Good morning, Bob! From ada." {
		t.Errorf("greet(Bob) = %+v", outcome)
	}
}

// TestChangesWaitForAPerson lets one call run and refuses another.
func TestChangesWaitForAPerson(t *testing.T) {
	d := start(t, load(t, ""))
	for _, approve := range []bool{true, false} {
		begun, err := d.agent.Call(t.Context(), client.Call{Tool: "change", Arguments: []byte(`{"name":"Bob"}`), Wait: -1})
		if err != nil || begun.Status != client.Pending {
			t.Fatalf("change(Bob) = %+v, %v; want it to wait", begun, err)
		}
		open, err := d.approver.Approvals(t.Context(), client.ApprovalFilter{Wait: time.Minute})
		if err != nil || len(open) != 1 || open[0].Call != begun.ToolCallID {
			t.Fatalf("Approvals() = %+v, %v; want the one of %s", open, err, begun.ToolCallID)
		}
		answer, want := d.approver.Reject, client.Rejected
		if approve {
			answer, want = d.approver.Approve, client.Success
		}
		if _, err := answer(t.Context(), open[0].ID, client.Answer{}.Seen(open[0].Record)); err != nil {
			t.Fatal(err)
		}
		if got, err := d.agent.Outcome(t.Context(), begun.ToolCallID, time.Minute); err != nil || got.Status != want {
			t.Errorf("afterwards the call is %+v, %v; want %s", got, err, want)
		}
	}
}

// TestSecondDaemonIsRefused builds two over one state directory.
func TestSecondDaemonIsRefused(t *testing.T) {
	cfg := load(t, "")
	first := start(t, cfg)
	_, err := daemon.New(t.Context(), daemon.Options{Config: cfg, Version: "1", Logger: hclog.NewNullLogger()})
	held, ok := errors.AsType[*daemon.HeldError](err)
	if !ok || held.PID != os.Getpid() {
		t.Fatalf("a second daemon: %v, want a HeldError with the process", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, cfg)
}

// TestReload takes up a changed configuration, and refuses one with mistakes as
// a whole.
func TestReload(t *testing.T) {
	cfg := load(t, "")
	d := start(t, cfg)
	text, err := os.ReadFile(cfg.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(cfg.Files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verdict := func() string {
		t.Helper()
		e, err := d.agent.Explain(t.Context(), client.Call{Tool: "change", Arguments: []byte(`{"name":"Bob"}`)})
		if err != nil {
			t.Fatal(err)
		}
		return e.Verdict.String()
	}
	for _, tt := range []struct {
		name, text  string
		wantErr     string
		wantVerdict string
		wantText    string
	}{
		{"nothing changed", string(text), "", "ask", "Hello, Bob! From ada."},
		{
			"another level and other settings",
			strings.Replace(string(text), "config {", "approval { side_effecting = \"allow\" }\n  config {\n    greeting = \"Hi\"\n", 1),
			"", "allow", "Hi, Bob! From ada.",
		},
		{"an unknown argument", strings.Replace(string(text), "claims", "clams", 1), "clams", "allow", "Hi, Bob! From ada."},
		{"a wrong setting", strings.Replace(string(text), "config {", "config {\n    greting = 1\n", 1), "greting", "allow", "Hi, Bob! From ada."},
		{"another state directory", strings.Replace(string(text), `"state"`, `"other"`, 1), "state_dir cannot be changed", "allow", "Hi, Bob! From ada."},
		{"back again", string(text), "", "ask", "Hello, Bob! From ada."},
	} {
		write(tt.text)
		err := d.approver.Reload(t.Context(), "")
		if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
			t.Errorf("%s: Reload() = %v, want %q", tt.name, err, tt.wantErr)
		}
		if got := verdict(); got != tt.wantVerdict {
			t.Errorf("%s: the verdict is %s, want %s", tt.name, got, tt.wantVerdict)
		}
		if got := d.call(t, "greet", `{"name":"Bob"}`); got.Result == nil || got.Result.Content != tt.wantText {
			t.Errorf("%s: greet(Bob) = %+v, want %q", tt.name, got, tt.wantText)
		}
	}
	if err := d.agent.Reload(t.Context(), ""); err == nil {
		t.Error("an agent can reload")
	}
	changes := func() (texts []string) {
		rows, err := d.approver.Journal(t.Context(), journal.Query{OldestFirst: true, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Kind == journal.Change && r.Via != "" {
				texts = append(texts, r.User+" over "+r.Via+" "+r.Notice)
			}
		}
		return texts
	}
	want := []string{
		"ada over cli reloaded the configuration",
		"ada over cli reloaded the configuration",
		"ada over cli refused to reload the configuration: ",
		"ada over cli refused to reload the configuration: ",
		"ada over cli refused to reload the configuration: state_dir cannot be changed",
		"ada over cli reloaded the configuration",
	}
	got := changes()
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("the journal has %q, want %q", got, want)
	}
	// Many mistakes are cut.
	write(strings.Replace(string(text), "claims", "a = 1\nclams = 1\nb = 1\nc = 1\nd = 1\nclaims", 1))
	if err := d.Reload(t.Context(), "", auth.Caller{User: "eve", Token: "ops"}, "rest"); err == nil {
		t.Error("Reload() with five mistakes = nil")
	}
	if got := changes(); len(got) != 7 || !strings.HasSuffix(got[6], `; and 2 more; with the token "ops"`) {
		t.Errorf("the journal has %q, want the first three of five mistakes", got)
	}
}

// TestWrongSettingsStartNothing starts a plugin that does not know a setting, which only its
// start reveals.
func TestWrongSettingsStartNothing(t *testing.T) {
	err := build(t, load(t, `greting = "Hi"`)).Start(t.Context())
	mistakes, ok := errors.AsType[*config.Error](err)
	if !ok || len(mistakes.Mistakes) != 1 || mistakes.Mistakes[0].Line != 11 || !strings.Contains(mistakes.Mistakes[0].Detail, `"greeting"`) {
		t.Errorf("Start() = %v; want the mistake with its line and the nearest name", err)
	}
	cfg := load(t, `greting = "Hi"`)
	d := build(t, cfg)
	if err := d.ServeControl(t.Context()); err != nil {
		t.Fatal(err)
	}
	in, feed := io.Pipe() // a client that stays
	defer feed.Close()
	r := relay.New(in, io.Discard)
	defer r.Close()
	err = d.StartFor(t.Context(), func(ctx context.Context) error {
		c, err := client.New(client.Options{StateDir: cfg.StateDir})
		if err != nil {
			return err
		}
		defer c.Close()
		conn, err := c.DialMCP(ctx)
		if err != nil {
			return err
		}
		return r.Serve(ctx, conn)
	})
	if _, ok := errors.AsType[*config.Error](err); !ok {
		t.Errorf("StartFor() = %v, want the mistake", err)
	}
	_, err = daemon.Try(t.Context(), daemon.Options{Config: load(t, `greting = "Hi"`), Version: "1", Logger: hclog.NewNullLogger()})
	if _, ok := errors.AsType[*config.Error](err); !ok {
		t.Errorf("Try() = %v, want the mistake", err)
	}
}

// TestStartForEnds stops a daemon while a client does not read its answers.
func TestStartForEnds(t *testing.T) {
	t.Parallel()
	d := build(t, load(t, ""))
	ctx, stop := context.WithCancel(t.Context())
	err := d.StartFor(ctx, func(serving context.Context) error {
		stop()
		<-serving.Done()
		return context.Cause(serving)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("StartFor() = %v, want what the service came to", err)
	}
}

// TestToolsAreKnownWithoutStarting lists tools from an earlier daemon's knowledge.
func TestToolsAreKnownWithoutStarting(t *testing.T) {
	cfg := load(t, "")
	if err := start(t, cfg).Close(); err != nil {
		t.Fatal(err)
	}
	d := start(t, cfg)
	plugins, err := d.approver.Plugins(t.Context())
	if err != nil || len(plugins) != 1 || len(plugins[0].Tools) != 2 || plugins[0].PID != 0 {
		t.Errorf("Plugins() = %+v, %v; want both tools and no process", plugins, err)
	}
}

// TestTry starts the plugins while a daemon runs. TestExamine checks a plugin whose sandbox has
// all that it requires, one whose sandbox lacks something required, and one that requires
// nothing.
func TestExamine(t *testing.T) {
	cfg := load(t, "")
	greeter := cfg.Plugins[0]
	refused, warned, off := greeter, greeter, greeter
	refused.Supervisor.Confinement = sandbox.Confinement{Isolation: sandbox.Off, Require: []sandbox.Layer{sandbox.LayerMounts}}
	warned.Supervisor.Confinement = refused.Supervisor.Confinement
	warned.Supervisor.Confinement.WarnOnMissing = true
	off.Enabled = false
	cfg.Plugins = append(cfg.Plugins, refused, off, warned)

	e, err := daemon.Examine(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Machine.Levels) != 4 || len(e.Plugins) != 3 {
		t.Fatalf("Examine() = %+v, want four levels and three plugins", e)
	}
	for i, p := range e.Plugins {
		if p.Name != "greeter" || p.Place != greeter.Place || p.Sandbox == nil || len(p.Sandbox.Layers) == 0 {
			t.Errorf("plugin %d = %+v, want its place and what would be in force", i, p)
		}
	}
	if p := e.Plugins[0]; !p.Starts || p.Problem != "" {
		t.Errorf("with the default sandbox: %+v, want it to start", p)
	}
	if p := e.Plugins[1]; p.Starts || !strings.Contains(p.Problem, "its sandbox requires mounts, which this machine does not have") || p.Isolation != sandbox.Off {
		t.Errorf("with a layer that is missing: %+v, want it refused", p)
	}
	if p := e.Plugins[2]; !p.Starts || !slices.ContainsFunc(p.Sandbox.Missing, func(g sandbox.Gap) bool { return g.Layer == sandbox.LayerMounts && g.Required }) {
		t.Errorf("with a layer that may be missing: %+v, want it to start", p)
	}
	if _, err := os.Stat(cfg.StateDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state directory: %v, want none", err)
	}
	if e, err = daemon.Examine(t.Context(), nil); err != nil || len(e.Plugins) != 0 || e.Plugins == nil {
		t.Errorf("Examine() without a configuration = %+v, %v", e, err)
	}
}

func TestTry(t *testing.T) {
	cfg := load(t, "")
	start(t, cfg)
	plugins, err := daemon.Try(t.Context(), daemon.Options{Config: cfg, Version: "1", Logger: hclog.NewNullLogger()})
	if err != nil || len(plugins) != 1 || plugins[0].Phase != supervisor.Ready || len(plugins[0].Tools) != 2 {
		t.Errorf("Try() = %+v, %v; want the plugin ready", plugins, err)
	}
}

// TestUnfinishedCallsAreEnded finds a call in the journal under which a host was
// killed.
func TestUnfinishedCallsAreEnded(t *testing.T) {
	cfg := load(t, "")
	if err := start(t, cfg).Close(); err != nil {
		t.Fatal(err)
	}
	leaveUnfinished(t, cfg.StateDir)
	d := start(t, cfg)
	rows, err := d.approver.Journal(t.Context(), journal.Query{Call: "tc_left"})
	if err != nil || len(rows) != 2 || rows[0].Kind != journal.End || rows[0].Code != string(tool.UnknownOutcome) {
		t.Fatalf("Journal() = %+v, %v; want an end with an unknown outcome", rows, err)
	}
	if end := rows[0]; end.ApprovedBy != "user" || end.Approval != "ap_left" || end.Approver != "bea" || end.Via != "elicitation" {
		t.Errorf("the end is %+v, want that it says who approved the call, as the start does", end)
	}
	if report, err := d.approver.VerifyJournal(t.Context()); err != nil || len(report.Problems) > 0 {
		t.Errorf("VerifyJournal() = %+v, %v", report, err)
	}
}

// leaveUnfinished records the start of a call in a state directory that no host
// holds.
func leaveUnfinished(t *testing.T, dir string) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(t.Context(), journal.Options{Store: s, KeyPath: filepath.Join(dir, "keys", "journal.key")})
	if err != nil {
		t.Fatal(err)
	}
	start := j.Start(t.Context(), journal.Record{Call: "tc_left", Tool: "change", Tier: tool.SideEffecting, User: "ada", ApprovedBy: "user", Approval: "ap_left", Approver: "bea", Via: "elicitation"})
	if err := errors.Join(start, j.Close(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
}
