package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/pipeline"
	"github.com/toolhost/toolhost/host/internal/sandbox"
	"github.com/toolhost/toolhost/host/internal/supervisor"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestMain makes this binary the launcher and the plugin of its own tests.
func TestMain(m *testing.M) {
	sandbox.Reexec()
	if os.Getenv("TOOLHOST_PLUGIN") != "" {
		newPlugin().Serve()
	}
	syscall.Umask(0o022) // others must not be able to write what is tested here
	goleak.VerifyTestMain(m)
}

type settings struct {
	Greeting string `json:"greeting,omitempty" jsonschema:"how to greet" default:"Hello"`
}

type args struct {
	Name string `json:"name" jsonschema:"whom to greet"`
}

// newPlugin returns a plugin with a tool that says who calls, and one that may
// not be offered.
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

// load writes a configuration with the plugin under the given settings, and
// loads it.
func load(t *testing.T, pluginConfig string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "bin", "greeter")
	if err := errors.Join(
		os.Mkdir(filepath.Join(dir, "ws"), 0o755),
		os.Mkdir(filepath.Join(dir, "bin"), 0o755),
		os.Link(self, program),
		os.Chmod(program, 0o755), // go build follows the umask of whoever runs it
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
	d, err := daemon.New(daemon.Options{Config: cfg, Version: "1", Logger: hclog.NewNullLogger()})
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

// start builds and starts a daemon.
func start(t *testing.T, cfg *config.Config) *daemon.Daemon {
	t.Helper()
	d := build(t, cfg)
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCall(t *testing.T) {
	d := start(t, load(t, `greeting = "Good morning"`))
	outcome := d.Call(t.Context(), pipeline.Request{Tool: "greet", Arguments: []byte(`{"name":"Bob"}`)})
	if got, want := outcome.Result.Text(), "Good morning, Bob! From ada."; got != want {
		t.Errorf("greet(Bob) = %q (%v), want %q", got, outcome.Result.Error, want)
	}
}

// TestToolsWithEffectsAreRefused holds until there are approvals.
func TestToolsWithEffectsAreRefused(t *testing.T) {
	d := start(t, load(t, ""))
	if entry, err := d.Tool("change"); err == nil {
		t.Errorf("a %s tool is offered", entry.Tier)
	}
	outcome := d.Call(t.Context(), pipeline.Request{Tool: "change", Arguments: []byte(`{"name":"Bob"}`)})
	if outcome.Result.Error == nil || outcome.Result.Error.Code != tool.NotFound {
		t.Errorf("change(Bob) = %+v, want code not_found", outcome.Result)
	}
	refused := d.Refused()
	if len(refused) != 1 || refused[0].Tool != "change" || !strings.Contains(refused[0].Reason, "approval") {
		t.Errorf("Refused() = %+v, want change, since there are no approvals", refused)
	}
}

// TestWrongSettingsStartNothing starts a plugin that does not know a setting,
// which nobody could know before.
func TestWrongSettingsStartNothing(t *testing.T) {
	d := build(t, load(t, `greting = "Hi"`))
	err := d.Start(t.Context())
	mistakes, ok := errors.AsType[*config.Error](err)
	if !ok || len(mistakes.Mistakes) != 1 || mistakes.Mistakes[0].Line != 11 || !strings.Contains(mistakes.Mistakes[0].Detail, `"greeting"`) {
		t.Errorf("Start() = %v; want the mistake with its line and the nearest name", err)
	}
	if state := d.Plugins()[0]; state.Phase != supervisor.Broken || !strings.Contains(state.Refused, "config.hcl:11") {
		t.Errorf("the plugin is %s, refused %q; want the place", state.Phase, state.Refused)
	}
	in, feed := io.Pipe()
	defer feed.Close()
	d = build(t, load(t, `greting = "Hi"`))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, ok := errors.AsType[*config.Error](d.ServeMCP(ctx, in, io.Discard)); !ok {
		t.Error("ServeMCP served half a host")
	}
}

// TestToolsAreKnownWithoutStarting lists tools by what an earlier daemon has
// learned.
func TestToolsAreKnownWithoutStarting(t *testing.T) {
	cfg := load(t, "")
	first := start(t, cfg)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	d := start(t, cfg)
	if state := d.Plugins()[0]; len(d.Tools()) != 1 || state.PID != 0 {
		t.Errorf("%d tools, process %d; want one tool and no process", len(d.Tools()), state.PID)
	}
	d.StartPlugins(t.Context())
	if state := d.Plugins()[0]; state.Phase != supervisor.Ready {
		t.Errorf("after StartPlugins the plugin is %s", state.Phase)
	}
}
