package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testprogram"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// defaults are the settings of a block without any.
func defaults() settings {
	return settings{
		Backend: backendHost, Timeout: time.Minute, MaxTimeout: 10 * time.Minute, Grace: 200 * time.Millisecond, MaxOutput: tool.MiB,
		Limits: limits{CPUTime: time.Hour}, MaxJobs: 16, MaxJobsPerUser: 64, MaxShellsPerUser: 16, JobTime: 24 * time.Hour, SessionIdle: 4 * time.Hour, Apart: true,
	}
}

func TestSettingMistakes(t *testing.T) {
	if wrong := defaults().mistakes(); len(wrong) > 0 {
		t.Errorf("the defaults are refused: %v", errors.Join(wrong...))
	}
	for _, tt := range []struct {
		path, want string
		change     func(*settings)
	}{
		{"timeout", "timeout is 0s, expected more than 0", func(s *settings) { s.Timeout = 0 }},
		{"timeout", "timeout is 11m0s, which is more than max_timeout (10m0s)", func(s *settings) { s.Timeout = 11 * time.Minute }},
		{"job_time", "job_time is -1s", func(s *settings) { s.JobTime = -time.Second }},
		{"session_idle", "session_idle is 0s", func(s *settings) { s.SessionIdle = 0 }},
		{"limits.cpu_time", "limits: cpu_time is 1.5s, expected whole seconds", func(s *settings) { s.Limits.CPUTime = 1500 * time.Millisecond }},
		{"pass", `pass has "LD_PRELOAD", which commands may not be given`, func(s *settings) { s.Pass = []string{"LD_PRELOAD"} }},
		{"env", `env has "GIT_DIR", which commands may not be given`, func(s *settings) { s.Env = map[string]string{"GIT_DIR": "x"} }},
		{"env", `env has "A", which commands may not be given`, func(s *settings) { s.Env = map[string]string{"A": "\x00"} }},
		{"read", `read has "etc", expected an absolute path or one of system, workspace, home, tmp`, func(s *settings) { s.Read = []string{"etc"} }},
	} {
		s := defaults()
		tt.change(&s)
		wrong := s.mistakes()
		if len(wrong) != 1 {
			t.Errorf("%s: %v, want %q", tt.path, wrong, tt.want)
			continue
		}
		one, ok := errors.AsType[*sdk.SettingError](wrong[0])
		if !ok || strings.Join(one.Path, ".") != tt.path || !strings.HasPrefix(one.Summary, tt.want) {
			t.Errorf("%v, want %s: %q", wrong[0], tt.path, tt.want)
		}
	}
}

// The limits of older systems are settings: 30 s and 60 s, 1 MB of output kept,
// 16 KB of result.
func TestEverySeedLimit(t *testing.T) {
	p, _ := startShell(t, map[string]any{"timeout": "1s", "max_timeout": "30s", "grace": "0s", "max_output": "1MiB"})
	got := p.Call(t.Context(), "shell_exec", map[string]any{"command": "sleep 1000"})
	if got.Error == nil || got.Error.Message != "The command had not ended after 1s and was killed" {
		t.Errorf("the time of the settings: %v", got.Error)
	}
	for _, spec := range p.Tools() {
		if spec.Name == "shell_exec" && spec.Timeout != 30*time.Second+margin {
			t.Errorf("the host gives a call %v", spec.Timeout)
		}
	}
	got = p.Run(t.Context(), tool.Call{Tool: "shell_exec", Arguments: asJSON(t, map[string]any{"command": "head -c 2000000 /dev/zero | tr '\\0' x"}), Context: tool.Context{MaxOutput: 4 * tool.MiB}}, tool.Sink{})
	if kept := strings.Count(got.Text(), "x"); kept != int(tool.MiB) {
		t.Errorf("%d bytes are kept of 2,000,000, want 1 MiB", kept)
	}
	got = p.Run(t.Context(), tool.Call{Tool: "shell_exec", Arguments: asJSON(t, map[string]any{"command": "seq 100000"}), Context: tool.Context{MaxOutput: 16 * tool.KiB}}, tool.Sink{})
	if len(got.Text()) > 16<<10 || len(got.Text()) < 15<<10 {
		t.Errorf("the result has %d bytes, want nearly 16 KiB", len(got.Text()))
	}
}

// A process is confined if both are so: a host without a sandbox does the first.
func TestConfinedBy(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n": true,
		"Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t0\nSeccomp_filters:\t0\n": false,
		"Name:\tx\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n": false,
		"": false,
	} {
		if got := confinedBy(status); got != want {
			t.Errorf("confinedBy(%q) = %v", status, got)
		}
	}
}

// Where commands cannot be held, or not be run at all, none is.
func TestDisabled(t *testing.T) {
	empty := t.TempDir()
	broken := filepath.Join(t.TempDir(), "bash")
	if err := testprogram.Write(broken, strings.NewReader("#!/bin/sh\necho broken >&2\nexit 3\n")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name      string
		set       map[string]any
		why, hint string
	}{
		{"by the settings", map[string]any{"backend": "disabled", "unconfined": true}, "commands are disabled on this host", "backend in the settings"},
		{"without a sandbox", map[string]any{}, "commands are disabled: the plugin has no sandbox", "toolhost doctor"},
		{"without a shell", map[string]any{"unconfined": true, "path": empty}, "commands are disabled: bash cannot be executed", "program not found: bash"},
		{"with a broken one", map[string]any{"unconfined": true, "path": filepath.Dir(broken)}, "commands are disabled: bash cannot be executed", "bash ended with: broken"},
	} {
		p := sdktest.Start(t, newPlugin(), sdktest.Options{Settings: tt.set})
		for _, name := range []string{"shell_exec", "shell_background"} {
			got := p.Call(t.Context(), name, map[string]any{"command": "echo ran"})
			if got.Error == nil || got.Error.Code != tool.Unavailable || !strings.HasPrefix(got.Error.Message, tt.why) || !strings.Contains(got.Error.Hint, tt.hint) {
				t.Errorf("%s: %s = %q, %+v", tt.name, name, got.Text(), got.Error)
			}
		}
		if got := p.Call(t.Context(), "process_list", map[string]any{}); got.Error != nil {
			t.Errorf("%s: process_list: %v", tt.name, got.Error)
		}
	}
	session := sdktest.Start(t, newPlugin(), sdktest.Options{Settings: map[string]any{"backend": "session"}})
	if _, err := session.Preview(t.Context(), "shell_exec", map[string]any{"command": "ls"}); tool.AsError(err).Code != tool.Unavailable {
		t.Errorf("a preview without a sandbox: %v", err)
	}
}
