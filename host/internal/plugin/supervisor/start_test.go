package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// wantUnavailable checks the caller's error for a plugin that did not start.
func wantUnavailable(t *testing.T, err error, text string, retryable bool) {
	t.Helper()
	var e *tool.Error
	if !errors.As(err, &e) {
		t.Fatalf("Run() = %v, want a *tool.Error", err)
	}
	if e.Code != tool.Unavailable || !strings.Contains(e.Message, text) || e.Retryable != retryable {
		t.Errorf("Run() = %+v, want code unavailable, %q in the message, retryable %v", e, text, retryable)
	}
	if strings.Contains(e.ModelText(), "/") {
		t.Errorf("the caller reads a path: %s", e.ModelText())
	}
}

func TestStartFailures(t *testing.T) {
	for _, tt := range []struct {
		mode string
		// caller is part of the caller's error, operator part of the output of Plugins.
		caller, operator string
	}{
		{"noisy", "prints to standard output before its handshake", `printed "Loading...[31m" before its handshake`},
		{"talker", "is not a plugin", `it printed "Usage: talker [flags]" instead of a handshake`},
		{"usage", "is not a plugin", `it printed "Usage: usage [flags]" instead`},
		{"closed", "is not a plugin", "closed its standard output without a handshake"},
		{"longline", "is not a plugin", `it printed "xxx`},
		{"flooder", "is not a plugin", `it printed "flood" instead`},
		{"oldversion", "another version of the plugin contract", `speaks version "7" of the plugin contract, expected 1`},
		{"oldcore", "another go-plugin", `core protocol "9", expected 1`},
		{"notls", "does not offer TLS", "handshake: it has no certificate"},
		{"badcert", "its certificate cannot be used", "not base64 without padding"},
		{"netrpc", "does not speak gRPC", `it speaks "netrpc", expected grpc`},
		{"tcp", "does not listen on a unix socket", `it listens on "tcp"`},
		{"elsewhere", "its socket is not where it belongs", `its socket is "/run/other/s"`},
		{"liar", "it has another name", `says that it is "fs", expected "liar"`},
		{"manyempty", "it broke the contract in Describe", "it sent a message of more than 20000 elements"},
		{"manytools", "it broke the contract in Describe", "it has 1001 tools, more than 1000"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			k := keepPlugins(t,
				// A copy: a link would change, in other tests, with each further link.
				Plugin{Name: tt.mode, Path: copyProgram(t, tt.mode), Confinement: plain, Limits: sandbox.DefaultLimits()},
				Plugin{Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits()})
			_, err := k.call(t, tt.mode, "echo", `{}`)
			wantUnavailable(t, err, tt.caller, false)
			s := k.state(t, tt.mode)
			if s.Phase != Broken || !strings.Contains(s.Refused, tt.operator) {
				t.Errorf("state is %v, refused %q; want broken, %q", s.Phase, s.Refused, tt.operator)
			}
			// The same answer again, without another process.
			generation := k.managers[tt.mode].base.generation
			_, err = k.call(t, tt.mode, "echo", `{}`)
			wantUnavailable(t, err, tt.caller, false)
			if got := k.managers[tt.mode].base.generation; got != generation {
				t.Errorf("generation %d after the second call, want %d", got, generation)
			}
			k.mustCall(t, "calm", "echo") // the host lives
		})
	}
}

func TestStartCrashes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ mode, want, detail string }{
		{"crashstart", "did not start: it exited with code 3", "during its handshake"},
		{"quiet", "did not start: it exited with code 0", "during its handshake"},
		{"silent", "did not start: it did not print its handshake within 5s", "during its start"},
		{"noaccept", "did not start: it did not answer the connection within 5s", "during the connection"},
		{"crashdescribe", "did not start: it exited with code 4", "during Describe"},
		{"erring", "did not start: it failed in Describe", "no describing today"},
		{"hangdescribe", "did not start: it did not answer Describe within 5s", "during Describe"},
		{"crashconfigure", "did not start: it exited with code 4", "during Configure"},
		{"hangconfigure", "did not start: it did not answer Configure within 5s", "during Configure"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			k := keep(t, tt.mode, "calm")
			k.timing.start = 5 * time.Second
			_, err := k.call(t, tt.mode, "echo", `{}`)
			wantUnavailable(t, err, tt.want, true)
			s := k.state(t, tt.mode)
			if s.LastCrash == nil || s.Crashes != 1 {
				t.Fatalf("state is %+v, want a crash", s)
			}
			if cause := operatorError(errors.Unwrap(err)); !strings.Contains(cause.Error(), tt.detail) {
				t.Errorf("the operator reads %q, want %q", cause, tt.detail)
			}
			k.mustCall(t, "calm", "echo")
		})
	}
}

func TestBinaryIsChecked(t *testing.T) {
	for _, tt := range []struct {
		name             string
		spoil            func(t *testing.T, p *Plugin)
		caller, operator string
	}{
		{"missing", func(_ *testing.T, p *Plugin) { p.Path += "x" }, "its program does not exist", "build it, or correct path"},
		{"not executable", chmod(0o644), "is not executable", "chmod +x "},
		{"group-writable", chmod(0o775), "others can write to its program", "chmod go-w "},
		{"world-writable", chmod(0o757), "others can write to its program", "chmod go-w "},
		{"a huge file", func(t *testing.T, p *Plugin) {
			t.Helper()
			p.Path = filepath.Join(filepath.Dir(p.Path), "huge")
			if err := errors.Join(os.WriteFile(p.Path, nil, 0o755), os.Truncate(p.Path, 10<<30)); err != nil {
				t.Fatal(err)
			}
		}, "too large for a program", "more than 2GiB"},
		{"a directory", func(_ *testing.T, p *Plugin) { p.Path = filepath.Dir(p.Path) }, "is a directory", "name the program in it"},
		{"a link", func(t *testing.T, p *Plugin) {
			t.Helper()
			link := p.Path + "-link"
			if err := os.Symlink(p.Path, link); err != nil {
				t.Fatal(err)
			}
			p.Path = link
		}, "is a symbolic link", "name the file itself"},
		{"a writable directory", func(t *testing.T, p *Plugin) {
			t.Helper()
			if err := os.Chmod(filepath.Dir(p.Path), 0o775); err != nil {
				t.Fatal(err)
			}
		}, "others can write to its program's directory", "chmod go-w "},
		{"another digest", func(_ *testing.T, p *Plugin) { p.SHA256 = strings.Repeat("0", 64) }, "not the one that was pinned", "expected 000"},
		{"text", func(t *testing.T, p *Plugin) {
			t.Helper()
			p.Path = filepath.Join(filepath.Dir(p.Path), "text")
			if err := os.WriteFile(p.Path, []byte("hello"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "could not be executed", "neither an ELF program nor a script"},
		{"another architecture", func(t *testing.T, p *Plugin) {
			t.Helper()
			p.Path = filepath.Join(filepath.Dir(p.Path), "foreign")
			header := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 57)...)
			header[16], header[18], header[20] = 2, 22, 1 // an executable for s390
			if err := os.WriteFile(p.Path, header, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "could not be executed", "wrong architecture"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := Plugin{Name: "calm", Path: copyProgram(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits()}
			good := p.Path
			tt.spoil(t, &p)
			k := keepPlugins(t, p)
			_, err := k.call(t, "calm", "echo", `{}`)
			wantUnavailable(t, err, tt.caller, false)
			if s := k.state(t, "calm"); !strings.Contains(s.Refused, tt.operator) {
				t.Errorf("refused %q, want %q", s.Refused, tt.operator)
			}
			if p.Path == good && p.SHA256 == "" { // mended: the next call works
				if err := errors.Join(os.Chmod(filepath.Dir(good), 0o755), os.Chmod(good, 0o755)); err != nil {
					t.Fatal(err)
				}
				k.mustCall(t, "calm", "echo")
			}
		})
	}
}

func chmod(mode os.FileMode) func(*testing.T, *Plugin) {
	return func(t *testing.T, p *Plugin) {
		t.Helper()
		if err := os.Chmod(p.Path, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSettings(t *testing.T) {
	p := Plugin{
		Name: "calm", Path: program(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits(),
		Settings: func(schema []byte) ([]byte, error) {
			if string(schema) != `{"type":"object"}` {
				t.Errorf("Settings was given %q", schema)
			}
			return []byte(`{"color":"wrong"}`), nil
		},
		Locate: func(path []string) string { return "config.hcl:7 " + strings.Join(path, ".") },
	}
	k := keepPlugins(t, p)
	_, err := k.call(t, "calm", "echo", `{}`)
	wantUnavailable(t, err, "its settings are wrong", false)
	if got, want := k.state(t, "calm").Refused, "config.hcl:7 color: it is wrong: expected right, not {\"color\":\"wrong\"}"; got != want {
		t.Errorf("refused %q, want %q", got, want)
	}
	if !strings.Contains(k.log.String(), "it is old") {
		t.Error("the warning is not in the log")
	}

	p.Settings = func([]byte) ([]byte, error) { return nil, errors.New("config.hcl:9: no such setting") }
	k = keepPlugins(t, p)
	_, err = k.call(t, "calm", "echo", `{}`)
	wantUnavailable(t, err, "its settings are wrong", false)
	if got, want := k.state(t, "calm").Refused, "settings: config.hcl:9: no such setting"; got != want {
		t.Errorf("refused %q, want %q", got, want)
	}
}
