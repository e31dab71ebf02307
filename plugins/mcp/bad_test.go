package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// refusal starts the plugin with settings that it must refuse, and returns what is wrong.
func refusal(t *testing.T, settings map[string]any) string {
	t.Helper()
	target := sdktest.InProcess(newPlugin())
	for _, f := range sdktest.Check(t.Context(), target, sdktest.Options{Settings: settings}) {
		if f.Check == "configure" {
			return f.Problem
		}
	}
	t.Errorf("the plugin accepts %v", settings)
	return ""
}

// Servers that do not start say why.
func TestBadStarts(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"silent":              "does not start: it did not answer within 600ms",
		"exits":               "does not start: it ended with exit code 7; its last lines: cannot find module 'x'",
		"unknown revision":    `does not start: unsupported protocol version: "1999-01-01"`,
		"never lists":         "does not start: it did not answer within 600ms",
		"a list that is none": "does not start: its list of tools cannot be read",
		"only text on stdout": "does not start: it writes text to standard output, where only messages belong, such as: still starting",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			timeout := "9s"
			if strings.Contains(want, "within") {
				timeout = "600ms"
			}
			got := refusal(t, map[string]any{"command": program(t, script), "start_timeout": timeout})
			if !strings.Contains(got, want) {
				t.Errorf("refused because %q, want %q", got, want)
			}
		})
	}
}

// Servers that break rules, and of which the plugin makes something.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		script string
		code   tool.Code
		want   string
	}{
		{"plain", "", "done"},
		{"ignores unknown methods", "", "done"},
		{"exits on unknown methods", "", "done"},
		{"answers twice", "", "first"},
		{"text on stdout", "", "done"},
		{"batch", "", "in a batch"},
		{"deep", "", "done"},
		{"floods with logs", "", "done"},
		{"asks for everything", "", `method not found: \"roots/list\"`},
		{"huge result", tool.Failed, "it sent a message that is larger than 1MiB"},
		{"closes", tool.Failed, "it ended with exit code 0"},
		{"no result", tool.Failed, "the outcome of the call is unknown"},
		{"floods with requests", tool.Failed, "it sent more than 64 requests without waiting"},
		{"pretends to be closed", tool.Failed, "the outcome of the call is unknown"},
		{"refuses", tool.InvalidArgument, `answers with error -32602: bad\x1b[2J arguments`},
	} {
		t.Run(tt.script, func(t *testing.T) {
			t.Parallel()
			p := bridge(t, tt.script, map[string]any{"max_message": "1MiB", "start_timeout": "2s"}, sdktest.Options{})
			for range 2 { // a server that ended is started again
				got := p.Call(t.Context(), "peer_run", nil)
				text, code := got.Text(), tool.Code("")
				if got.Error != nil {
					text, code = got.Error.Message, got.Error.Code
				}
				if code != tt.code || !strings.Contains(text, tt.want) {
					t.Errorf("%q, %v; want code %q and %q", text, got.Error, tt.code, tt.want)
				}
			}
		})
	}
}

func TestHostileLists(t *testing.T) {
	t.Parallel()
	t.Run("10,000 tools", func(t *testing.T) {
		t.Parallel()
		if n := len(bridge(t, "10,000 tools", nil, sdktest.Options{}).Tools()); n != 500 {
			t.Errorf("%d tools, want 500", n)
		}
	})
	t.Run("endless list", func(t *testing.T) {
		t.Parallel()
		if n := len(bridge(t, "endless list", nil, sdktest.Options{}).Tools()); n != 500 {
			t.Errorf("%d tools, want 500", n)
		}
	})
	t.Run("repeated cursor", func(t *testing.T) {
		t.Parallel()
		tools := bridge(t, "repeated cursor", nil, sdktest.Options{}).Tools()
		if len(tools) != 1 || !strings.Contains(tools[0].Unavailable, "2 tools of the server have the same name here") {
			t.Errorf("%+v, want one tool that is refused", tools)
		}
	})
	t.Run("hostile names", func(t *testing.T) {
		t.Parallel()
		tools := bridge(t, "hostile names", nil, sdktest.Options{}).Tools()
		var got []string
		for _, spec := range tools {
			if !tool.ValidName(spec.Name) || tool.Visible(spec.Description+spec.Title+spec.Unavailable) != spec.Description+spec.Title+spec.Unavailable {
				t.Errorf("%+v is not valid", spec)
			}
			got = append(got, spec.Name+" "+spec.Unavailable)
		}
		want := []string{
			"peer_" + strings.Repeat("n", 50) + "_2c62ce96 ", "peer_read 2 tools of the server have the same name here: read, READ", "peer_r_ad_e0d37576 ", "peer_e3b0c442 ", "peer_x ",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the tools differ (-want +got):\n%s", diff)
		}
	})
}

func TestSettings(t *testing.T) {
	t.Parallel()
	good := program(t, "good")
	for _, tt := range []struct {
		name     string
		settings map[string]any
		want     string
	}{
		{"nothing", map[string]any{}, "set command or url"},
		{"both", map[string]any{"command": good, "url": "https://example.com"}, "url is set besides command"},
		{"an empty program", map[string]any{"command": []string{""}}, "command: 0 is empty"},
		{"a NUL", map[string]any{"command": []string{"a", "b\x00"}}, "command: 1 contains a NUL byte"},
		{"no such program", map[string]any{"command": []string{"no-such-program-of-the-test"}}, "does not start: program not found"},
		{"no such directory", map[string]any{"command": good, "dir": "/no/such/directory"}, "does not start: working directory not found"},
		{"a relative directory", map[string]any{"command": good, "dir": "x"}, `dir is "x", expected an absolute path`},
		{"headers", map[string]any{"command": good, "headers": map[string]any{"A": "b"}}, "headers is for servers with a url"},
		{"a variable of the loader", map[string]any{"command": good, "env": map[string]any{"LD_PRELOAD": "x"}}, "env: LD_PRELOAD is a variable that a server may not be given"},
		{"a variable of the host", map[string]any{"command": good, "env": map[string]any{"TOOLHOST_X": "x"}}, "env: TOOLHOST_X is a variable"},
		{"a NUL in a variable", map[string]any{"command": good, "env": map[string]any{"A": "\x00"}}, "env: A contains a NUL byte"},
		{"no URL", map[string]any{"url": "ftp://example.com"}, "url is not an address"},
		{"a password", map[string]any{"url": "https://u:p@example.com"}, "url holds a user or password"},
		{"env with a URL", map[string]any{"url": "https://example.com", "env": map[string]any{"A": "b"}}, "env is for servers with a command"},
		{"the name of a header", map[string]any{"url": "https://example.com", "headers": map[string]any{"a b": "c"}}, "headers: a b is not the name of a header"},
		{"a header of the protocol", map[string]any{"url": "https://example.com", "headers": map[string]any{"Mcp-Session-Id": "c"}}, "is a header that the protocol sets"},
		{"the value of a header", map[string]any{"url": "https://example.com", "headers": map[string]any{"A": "b\nc"}}, "has a value with characters"},
		{"a prefix", map[string]any{"command": good, "prefix": "A-b"}, `prefix is "A-b", expected`},
		{"a role that is none", map[string]any{"command": good, "roles": map[string]any{"echo": map[string]any{"text": "file"}}}, `roles: echo: text is "file", expected one of path, command`},
		{"a role of no tool", map[string]any{"command": good, "roles": map[string]any{"ehco": map[string]any{"text": "path"}}}, "roles: ehco is not a tool of the server; expected one of echo"},
		{"a role of no argument", map[string]any{"command": good, "roles": map[string]any{"echo": map[string]any{"txt": "path"}}}, "roles: echo: txt is not an argument of the tool; expected one of text"},
		{"idempotent, and no tool", map[string]any{"command": good, "idempotent": []string{"eco"}}, `idempotent: 0 "eco" is not a tool of the server; expected one of echo`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := refusal(t, tt.settings); !strings.Contains(got, tt.want) {
				t.Errorf("refused because %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	p := bridge(t, "good", map[string]any{"roles": map[string]any{"echo": map[string]any{"text": "path"}}}, sdktest.Options{})
	if got := string(find(t, p.Tools(), "peer_echo").InputSchema); !strings.Contains(got, `"x-role":"path"`) {
		t.Errorf("the schema is %s, want the role in it", got)
	}
}

// A server that answers as if the connection had been closed does not get the call twice.
func TestCallIsNotRepeated(t *testing.T) {
	t.Parallel()
	p := bridge(t, "pretends to be closed", nil, sdktest.Options{})
	for call := range 3 {
		got := p.Call(t.Context(), "peer_run", nil)
		if want := fmt.Sprint("call ", call+1); got.Error == nil || !strings.Contains(got.Error.Message, want) {
			t.Errorf("%v, want %s", got.Error, want)
		}
	}
}

// A server that does not read keeps no call from ending, and no other from beginning.
func TestServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	p := bridge(t, "does not read", nil, sdktest.Options{})
	large := map[string]any{"text": strings.Repeat("x", 1<<20)}
	for range 30 { // more than the queue and the pipe hold
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan tool.Result, 1)
		go func() { ended <- p.Call(ctx, "peer_run", large) }() // ends with ctx
		cancel()
		if got := <-ended; got.Error == nil || got.Error.Code != tool.Canceled {
			t.Fatalf("the canceled call = %v", got.Error)
		}
	}
	if err := p.Drain(t.Context()); err != nil {
		t.Errorf("canceled calls still run: %v", err)
	}
}

// Everything that a server has started ends with the plugin.
func TestForks(t *testing.T) {
	t.Parallel()
	p := bridge(t, "forks", nil, sdktest.Options{})
	got := p.Call(t.Context(), "peer_run", nil)
	pid, err := strconv.Atoi(got.Text())
	if err != nil {
		t.Fatalf("run = %q, %v", got.Text(), got.Error)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the process that the server has started does not run: %v", err)
	}
	p.Close()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process %d that the server has started still runs: %v", pid, err)
	}
}
