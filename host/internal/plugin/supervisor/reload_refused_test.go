package supervisor

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testprogram"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestRefusedChange checks that all mistakes are found before anything changes, and that the
// old set keeps running.
func TestRefusedChange(t *testing.T) {
	t.Parallel()
	wrong := errors.New("config.hcl:9: no such setting")
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, p *Plugin)
		want   string
	}{
		{"settings that do not fit the known schema", func(_ *testing.T, p *Plugin) {
			p.Settings = func([]byte) ([]byte, error) { return nil, wrong }
		}, `plugin "calm": settings: config.hcl:9: no such setting`},
		{"settings that do not fit an unknown schema", func(t *testing.T, p *Plugin) {
			t.Helper()
			rebuild(t, p.Path)
			p.Settings = func([]byte) ([]byte, error) { return nil, wrong }
		}, `plugin "calm": settings: config.hcl:9: no such setting`},
		{"settings that the plugin refuses", func(_ *testing.T, p *Plugin) {
			p.Settings, p.Locate = fixed(`{"color":"wrong"}`), func([]string) string { return "config.hcl:7" }
		}, `plugin "calm": config.hcl:7: it is wrong`},
		{"another path", func(_ *testing.T, p *Plugin) { p.Path += "x" }, `plugin "calm": there is no `},
		{"a program that is no plugin", func(t *testing.T, p *Plugin) {
			t.Helper()
			p.Path = copyProgram(t, "usage")
		}, `plugin "calm": it is not a plugin: it printed "Usage: usage [flags]"`},
		{"a program that crashes", func(t *testing.T, p *Plugin) {
			t.Helper()
			p.Path = copyProgram(t, "crashstart")
		}, "exited with code 3"},
		{"a program of another name", func(t *testing.T, p *Plugin) {
			t.Helper()
			p.Path = copyProgram(t, "liar")
		}, `says that it is "fs"`},
		{"a program that was not pinned", func(_ *testing.T, p *Plugin) { p.SHA256 = strings.Repeat("0", 64) }, "expected 000"},
		{"memory in which it does not start", func(_ *testing.T, p *Plugin) { p.Limits.Memory = 4 * tool.MiB }, `plugin "calm"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, other := configured(t, "calm", `{}`), configured(t, "other", `{}`)
			k := keepPlugins(t, p, other)
			pid, otherPID := k.mustCall(t, "calm", "pid"), k.mustCall(t, "other", "pid")
			digest, leftovers := k.digest("calm"), k.leftovers(t)
			changed := p
			tt.change(t, &changed)
			newcomer := configured(t, "calm2", `{}`)
			newcomer.Path = copyProgram(t, "quiet")
			c, err := k.Prepare(t.Context(), []Plugin{changed, other.with(`{"list":"more"}`), newcomer})
			if c != nil || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `plugin "calm2"`) {
				t.Fatalf("Prepare() = %v, %v, want both mistakes: %q, and of calm2", c, err, tt.want)
			}
			if got := k.mustCall(t, "calm", "pid"); got != pid || k.digest("calm") != digest {
				t.Errorf("process %s takes calls, want %s as before", got, pid)
			}
			if got := k.mustCall(t, "other", "pid"); got != otherPID {
				t.Errorf("process %s of the other plugin takes calls, want %s as before", got, otherPID)
			}
			if s := k.state(t, "calm"); s.Phase != Ready || s.Crashes != 0 || s.Refused != "" || s.LastCrash != nil {
				t.Errorf("state is %+v, want ready", s)
			}
			eventually(t, "nothing is left of what was started", func() bool { return k.leftovers(t) == leftovers })
			k.change(t, p, other) // the next reload can start
		})
	}
}

// TestBrokenPluginDoesNotBlock makes reloads while a plugin cannot be started: one that does not
// touch it, one that does not repair it, and one that does.
func TestBrokenPluginDoesNotBlock(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"crashstart", "liar", "usage", "missing", "settings", "breaker"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			calm := configured(t, "calm", `{}`)
			broken := calm
			broken.Name = "broken"
			switch mode {
			case "missing":
				broken.Path += "x"
			case "settings":
				broken.Settings = fixed(`{"color":"wrong"}`)
			case "breaker":
			default:
				broken.Path = copyProgram(t, mode)
			}
			k := keepPlugins(t, calm, broken)
			_ = k.Start(t.Context()) // reports the failure
			if mode == "breaker" {
				for range defaultRestart().MaxCrashes {
					k.mustCall(t, "broken", "echo")
					if _, err := k.call(t, "broken", "exit", `{}`); tool.AsError(err).Code != tool.PluginCrashed {
						t.Fatalf("Run() = %v, want a crash", err)
					}
				}
			}
			before := k.managers["broken"]

			k.change(t, calm.with(`{"list":"more"}`), broken)
			if k.managers["broken"] != before {
				t.Error("the broken plugin was not left alone")
			}
			if len(k.names("calm")) != len(testTools)+1 {
				t.Error("the other plugin was not changed")
			}
			if mode == "breaker" {
				k.mustCall(t, "broken", "echo") // a reload gives it another chance
				return
			}
			worse := broken
			worse.Limits.OpenFiles++
			if _, err := k.Prepare(t.Context(), []Plugin{calm, worse}); err == nil || !strings.Contains(err.Error(), `plugin "broken": `) {
				t.Errorf("Prepare() = %v for a change that mends nothing, want that it is refused", err)
			}
			mended := calm
			mended.Name = "broken"
			k.change(t, calm, mended)
			k.mustCall(t, "broken", "echo")
		})
	}
}

// TestProgramThatIsMendedInPlace repairs a program that cannot be started, and one that cannot
// be found, without a change of the configuration.
func TestProgramThatIsMendedInPlace(t *testing.T) {
	t.Parallel()
	p := configured(t, "calm", `{}`)
	good, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"text", "missing"} {
		if err := os.Remove(p.Path); err != nil {
			t.Fatal(err)
		}
		if state == "text" {
			if err := os.WriteFile(p.Path, []byte("hello"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		k := keepPlugins(t, p)
		if err := k.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.change(t, p)
		if s := k.state(t, "calm"); s.Phase != Broken {
			t.Fatalf("%s: state is %v, want broken", state, s.Phase)
		}
		if err := errors.Join(testprogram.Write(p.Path+"~", bytes.NewReader(good)), os.Rename(p.Path+"~", p.Path)); err != nil {
			t.Fatal(err)
		}
		k.change(t, p)
		if s := k.state(t, "calm"); s.Phase != Ready || len(k.names("calm")) == 0 {
			t.Errorf("%s: state is %+v after a reload with a good program, want ready", state, s)
		}
	}
}
