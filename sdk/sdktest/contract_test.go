package sdktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// impatience is for plugins that are known to be too late.
const impatience = 500 * time.Millisecond

type sampleArgs struct {
	Text  string   `json:"text" jsonschema:"what to say" raw:"true" alias:"message"`
	Mode  string   `json:"mode,omitempty" jsonschema:"how" enum:"plain,loud" default:"plain"`
	Files []string `json:"files,omitempty" jsonschema:"files to mention" role:"path"`
}

type sampleOut struct {
	Said  string   `json:"said"`
	Words []string `json:"words"`
}

// sample is a plugin that does most of what a tool can do.
func sample() *sdk.Plugin {
	p := sdk.New("sample", "1.2.3")
	spec := func(name string) tool.Spec {
		return tool.Spec{Name: name, Description: "For a test.", Tier: tool.ReadOnly}
	}
	sdk.AddTool(p, spec("echo"), func(_ context.Context, c *sdk.Call, in sampleArgs) (sampleOut, error) {
		fmt.Fprintln(os.Stdout, "a stray print")
		c.Logger().Info("a line of the log")
		_, _ = syscall.Write(1, []byte("a stray write"))
		c.Progress(tool.Progress{Progress: 1, Total: 2})
		fmt.Fprint(c, in.Text)
		return sampleOut{Said: in.Text}, nil
	})
	sdk.AddTool(p, spec("panics"), func(context.Context, *sdk.Call, struct{}) (string, error) { panic("on purpose") })
	sdk.AddTool(p, spec("stray_bytes"), func(context.Context, *sdk.Call, struct{}) (string, error) {
		return "\xff\xfe", errors.New("and so does the error \xff")
	})
	sdk.AddTool(p, spec("waits"), func(ctx context.Context, c *sdk.Call, _ struct {
		Forever bool `json:"forever,omitempty" jsonschema:"wait for the end"`
	},
	) (string, error) {
		c.Progress(tool.Progress{})
		<-ctx.Done()
		return "", ctx.Err()
	})
	return p
}

// TestStrayPrints shows that what a plugin prints, from before the handshake
// on, ends up on its standard error and harms nothing.
func TestStrayPrints(t *testing.T) {
	p := StartBinary(t, os.Args[0], Options{Env: []string{fixtureVariable + "=sdk, stray prints"}})
	if got := p.Call(t.Context(), "echo", sampleArgs{Text: "hi"}); got.Error != nil {
		t.Errorf("echo = %v", got.Error)
	}
	p.Close() // from now on Stderr has everything
	for _, want := range []string{"before Serve", "from C, without a newline", "a stray print", "a stray write", `"@message":"a line of the log"`} {
		if !strings.Contains(p.Stderr(), want) {
			t.Errorf("standard error = %q, want it to hold %q", p.Stderr(), want)
		}
	}
}

// TestDescribe shows what a plugin of the sdk says about itself.
func TestDescribe(t *testing.T) {
	plugin := sample()
	plugin.WantSecrets("token")
	p := Start(t, plugin, Options{})
	d := p.describe
	if p.Name() != "sample" || d.GetVersion() != "1.2.3" || !strings.HasPrefix(d.GetSdk(), "toolhost-go ") {
		t.Errorf("the plugin is %q %q by %q, want sample 1.2.3 by toolhost-go", p.Name(), d.GetVersion(), d.GetSdk())
	}
	if want := []string{"connect", "drain", "preview"}; !slices.Equal(d.GetCapabilities(), want) {
		t.Errorf("capabilities = %q, want %q", d.GetCapabilities(), want)
	}
	if want := []string{"token"}; !slices.Equal(d.GetSecrets(), want) {
		t.Errorf("secrets = %q, want %q", d.GetSecrets(), want)
	}
	if got := len(d.GetTools()); got != 4 {
		t.Errorf("it describes %d tools, want 4", got)
	}
}

func sampleOptions() Options {
	return Options{Calls: []Call{
		{Tool: "echo", Args: sampleArgs{Text: "hi there"}},
		{Tool: "waits", Endless: true},
	}}
}

func TestRun(t *testing.T) {
	p := sample()
	Run(t, p, sampleOptions())
	Run(t, p, sampleOptions()) // a plugin can be run again
}

func TestRunBinary(t *testing.T) {
	for _, name := range []string{"sdk", "sdk, stray prints"} {
		t.Run(name, func(t *testing.T) {
			options := sampleOptions()
			options.Env = []string{fixtureVariable + "=" + name}
			RunBinary(t, os.Args[0], options)
		})
	}
	t.Run("without the sdk", func(t *testing.T) {
		_, options := fixture("sound")
		RunBinary(t, os.Args[0], options)
	})
}

// TestCheckBroken shows that the suite finds each breach of the contract and
// says what it is.
func TestCheckBroken(t *testing.T) {
	for _, name := range fixtureNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := breakages()[name]
			target, options := b.target(name)
			wantFinding(t, check(t.Context(), target, options, impatience), b.want)
		})
	}
}

// TestCheckNoStart is about programs that do not even start as a plugin.
func TestCheckNoStart(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"prints before the handshake", `start: Unrecognized remote plugin message: Starting up...`},
		{"ends at once", `no licence`},
		{"not a plugin", `start: Unrecognized remote plugin message`},
		{"sdk, mistakes", `path: has no description`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target, options := fixture(tt.name)
			wantFinding(t, check(t.Context(), target, options, impatience), tt.want)
		})
	}
	t.Run("missing", func(t *testing.T) {
		wantFinding(t, Check(t.Context(), Binary("/nowhere/plugin"), Options{}), "no such file")
	})
}

// TestCheckMistakes shows that mistakes in a plugin's code are findings.
func TestCheckMistakes(t *testing.T) {
	findings := Check(t.Context(), InProcess(mistaken()), Options{})
	wantFinding(t, findings, `start: tool "Bad-Name": the name is not valid`)
	wantFinding(t, findings, `start: tool "Bad-Name": path: has no description`)
}

func mistaken() *sdk.Plugin {
	p := sdk.New("mistaken", "1.0.0")
	sdk.AddTool(p, tool.Spec{Name: "Bad-Name", Description: "x", Tier: tool.ReadOnly},
		func(context.Context, *sdk.Call, struct {
			Path string `json:"path"`
		},
		) (string, error) {
			return "", nil
		})
	return p
}

// TestCheckIgnoresCancel is about a tool that goes on when its caller is gone.
func TestCheckIgnoresCancel(t *testing.T) {
	p := sdk.New("stubborn", "1.0.0")
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	sdk.AddTool(p, tool.Spec{Name: "goes_on", Description: "x", Tier: tool.SideEffecting},
		func(_ context.Context, c *sdk.Call, _ struct{}) (string, error) {
			c.Progress(tool.Progress{})
			<-release
			return "", nil
		})
	findings := check(t.Context(), InProcess(p), Options{Calls: []Call{{Tool: "goes_on", Endless: true}}}, impatience)
	wantFinding(t, findings, "cancel: calls are still running")
}

func wantFinding(t *testing.T, findings []Finding, want string) {
	t.Helper()
	for _, f := range findings {
		if strings.Contains(f.String(), want) {
			return
		}
	}
	t.Errorf("findings = %q, want one with %q", findings, want)
}
