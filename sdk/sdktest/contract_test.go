package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// impatience is for plugins that are known to be too late.
const impatience = 500 * time.Millisecond

// patienceWith is long for fixtures that answer: a busy machine with the race detector is slow.
func patienceWith(fixture string) time.Duration {
	if fixture == "never answers" || fixture == "outlives its host" {
		return impatience
	}
	return callTimeout
}

type sampleArgs struct {
	Text  string   `json:"text" jsonschema:"what to say" raw:"true" alias:"message"`
	Mode  string   `json:"mode,omitempty" jsonschema:"how" enum:"plain,loud" default:"plain"`
	Files []string `json:"files,omitempty" jsonschema:"files to mention" role:"path"`
}

type sampleOut struct {
	Said  string   `json:"said"`
	Words []string `json:"words"`
}

// sample is a plugin that does most things that a tool can do.
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
	sdk.AddTool(p, spec("stray_bytes"), func(context.Context, *sdk.Call, struct{}) (string, error) {
		return "\xff\xfe", tool.Errorf(tool.Failed, "and so does the error \xff")
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

// TestStrayPrints shows that a plugin's output, from before the handshake on, reaches its
// standard error and does no harm.
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

// TestDescribe shows the self-description of a plugin of the sdk.
func TestDescribe(t *testing.T) {
	plugin := sample()
	p := Start(t, plugin, Options{})
	d := p.describe
	if p.Name() != "sample" || d.GetVersion() != "1.2.3" || !strings.HasPrefix(d.GetSdk(), "toolhost-go ") {
		t.Errorf("the plugin is %q %q by %q, want sample 1.2.3 by toolhost-go", p.Name(), d.GetVersion(), d.GetSdk())
	}
	if want := []string{"connect", "drain", "drain_call", "preview"}; !slices.Equal(d.GetCapabilities(), want) {
		t.Errorf("capabilities = %q, want %q", d.GetCapabilities(), want)
	}
	if got := len(d.GetTools()); got != 3 {
		t.Errorf("it describes %d tools, want 3", got)
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

// TestCheckBroken shows that the suite finds and names each breach of the contract.
func TestCheckBroken(t *testing.T) {
	for _, name := range fixtureNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := breakages()[name]
			target, options := b.target(name)
			wantFinding(t, check(t.Context(), target, options, patienceWith(name)), b.want)
		})
	}
}

// TestCheckNoStart is about programs that do not even start as a plugin.
func TestCheckNoStart(t *testing.T) {
	for _, tt := range []struct {
		name string
		want []string // a part of each finding
	}{
		{"prints before the handshake", []string{`start: it printed "Starting up..." before its handshake: a plugin must not write to standard output`}},
		{"ends at once", []string{`start: it is not a plugin: it closed its standard output without a handshake (the process ended: exit status 3); its standard error: no licence`}},
		{"not a plugin", []string{`start: it is not a plugin: it printed "usage: fixture [flags]" instead of a handshake, which begins with "1|1|unix|"`}},
		{"sdk, mistakes", []string{`path: has no description`}},
		{"without TLS, elsewhere", []string{
			`start: handshake: its socket is "/tmp/elsewhere.sock", expected one in the directory $PLUGIN_UNIX_SOCKET_DIR`,
			`start: handshake: it has no certificate: serve with TLS`,
		}},
		{"of another version", []string{
			`start: handshake: it speaks version "2" of the plugin contract, expected 1`, `start: handshake: it listens on "tcp"`,
			`start: handshake: it speaks "netrpc"`, `start: handshake: its certificate is not base64 without padding`,
		}},
		{"talks to strangers", []string{`start: it answers a client without a certificate`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target, options := fixture(tt.name)
			findings := Check(t.Context(), target, options)
			if len(findings) != len(tt.want) {
				t.Errorf("findings = %q, want %d", findings, len(tt.want))
			}
			for _, want := range tt.want {
				wantFinding(t, findings, want)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		wantFinding(t, Check(t.Context(), Binary("/nowhere/plugin"), Options{}), "no such file")
	})
}

// TestCheckBare is about a plugin that serves the contract and nothing else.
func TestCheckBare(t *testing.T) {
	target, options := fixture("bare")
	findings := Check(t.Context(), target, options)
	if len(findings) != 2 {
		t.Errorf("findings = %q, want 2", findings)
	}
	wantFinding(t, findings, "health: it does not serve grpc.health.v1.Health")
	wantFinding(t, findings, "shutdown: it does not serve plugin.GRPCController/Shutdown")
}

// TestCheckGivesUp shows that the suite calls a tool that kills the plugin, or never answers,
// only once and reports it once.
func TestCheckGivesUp(t *testing.T) {
	for name, want := range map[string]string{
		"dies in a call": `standard error: panic: a goroutine of the tool's own / goroutine `,
		"never answers":  `arguments: tool "echo": called with {"text":true} it does not answer in time`,
	} {
		t.Run(name, func(t *testing.T) {
			target, options := breakages()[name].target(name)
			findings := check(t.Context(), target, options, patienceWith(name))
			wantFinding(t, findings, want)
			if len(findings) != 1 {
				t.Errorf("findings = %q, want one", findings)
			}
		})
	}
}

// TestContextDefaults shows the caller's data in a call if the test sets none.
func TestContextDefaults(t *testing.T) {
	p := sdk.New("context", "1.0.0")
	type seen struct {
		User, Session, Client string
		Attempt               int
		MaxOutput             tool.ByteSize
		Rooted, Owned         bool // there is a directory
	}
	look := func(_ context.Context, c *sdk.Call, _ struct{}) (seen, error) {
		exists := func(directory string) bool {
			info, err := os.Stat(directory)
			return err == nil && info.IsDir()
		}
		return seen{
			c.User(), c.Session(), c.Client(), c.Attempt(), c.MaxOutput(), len(c.Roots()) == 1 && exists(c.Roots()[0]), exists(c.UserDir()),
		}, nil
	}
	sdk.AddTool(p, tool.Spec{Name: "small", Description: "x", Tier: tool.ReadOnly}, look)
	sdk.AddTool(p, tool.Spec{Name: "large", Description: "x", Tier: tool.ReadOnly, MaxOutput: tool.MiB}, look)
	running := Start(t, p, Options{Context: tool.Context{Client: "a client"}})
	for _, tt := range []struct {
		tool string
		ctx  tool.Context
		want seen
	}{
		{"small", tool.Context{}, seen{"tester", "sdktest", "a client", 1, 40 * tool.KiB, true, true}},
		{"large", tool.Context{}, seen{"tester", "sdktest", "a client", 1, tool.MiB, true, true}},
		{
			"large",
			tool.Context{User: "ada", Attempt: 2, MaxOutput: 7, Roots: []string{"/nowhere"}},
			seen{"ada", "sdktest", "a client", 2, 7, false, true},
		},
	} {
		var got seen
		result := running.Run(t.Context(), tool.Call{Tool: tt.tool, Context: tt.ctx}, tool.Sink{})
		if err := json.Unmarshal(result.Structured, &got); err != nil || got != tt.want {
			t.Errorf("%s with %+v sees %+v (%v), want %+v", tt.tool, tt.ctx, got, result.Error, tt.want)
		}
	}
}

// TestSettingsWithUnits shows that sizes and durations can be written as in a
// configuration file, or as a plugin reads them.
func TestSettingsWithUnits(t *testing.T) {
	type limits struct {
		Size tool.ByteSize `json:"size" jsonschema:"x"`
		Name string        `json:"name,omitempty" jsonschema:"x"`
	}
	type settings struct {
		Wait  time.Duration `json:"wait,omitempty" jsonschema:"x"`
		Lists []limits      `json:"lists,omitempty" jsonschema:"x"`
	}
	want := settings{Wait: 10 * time.Second, Lists: []limits{{tool.MiB, "1MiB"}, {Size: 1 << 60}}}
	for name, given := range map[string]any{
		"texts": map[string]any{"wait": "10s", "lists": []any{map[string]any{"size": "1MiB", "name": "1MiB"}, map[string]any{"size": 1 << 60}}},
		"Go":    want,
	} {
		p := sample()
		var got settings
		sdk.Configure(p, func(_ context.Context, _ sdk.Config, s settings) error {
			got = s
			return nil
		})
		Start(t, p, Options{Settings: given})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: settings (-want +got):\n%s", name, diff)
		}
	}
	p := sample()
	sdk.Configure(p, func(context.Context, sdk.Config, settings) error { return nil })
	findings := Check(t.Context(), InProcess(p), Options{Settings: map[string]any{"lists": []any{map[string]any{"size": "1MB"}}}})
	wantFinding(t, findings, `configure: settings.lists[0].size: "1MB" is not a size`)
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

// TestCheckIgnoresCancel checks a tool that keeps running after its caller is gone.
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
