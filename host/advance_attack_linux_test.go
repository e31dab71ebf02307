package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/client"
)

// gated makes a workspace in which `cat gate` waits: gate is a pipe. So a line begins, the
// test changes something, and the parts after `cat gate` run, which the host has answered in
// advance.
func gated(t *testing.T, h *host) {
	t.Helper()
	ws := filepath.Join(h.dir, "ws")
	old, err := filepath.Glob(filepath.Join(ws, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range old { // of the attack before
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"plain": "harmless\n", "sub/plain": "harmless\n", ".env": canary, ".ssh/plain": canary} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		h.write(t, name, text)
	}
	if err := syscall.Mkfifo(filepath.Join(ws, "gate"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// atGate makes a call whose line begins with `cat gate`, and returns when it waits there: until
// gate is closed. ended gets the answer to the call.
func (h *host) atGate(t *testing.T, args map[string]any) (gate *os.File, ended <-chan string) {
	t.Helper()
	answer := make(chan string, 1)
	go func() { // ends with the call
		_, text, err := h.send("POST", "/v1/calls", h.token, asJSON(map[string]any{"tool": "shell_exec", "arguments": args}))
		if err != nil {
			text = err.Error()
		}
		answer <- text
	}()
	eventually(t, fmt.Sprint(args, " waits at the gate"), func() bool {
		select {
		case text := <-answer:
			t.Fatalf("%v ended before its gate: %s", args, text)
		default:
		}
		var err error
		gate, err = os.OpenFile(filepath.Join(h.dir, "ws", "gate"), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return !errors.Is(err, syscall.ENXIO)
	})
	return gate, answer
}

// whileGated runs a line that begins with `cat gate`, and calls change while it waits there.
func (h *host) whileGated(t *testing.T, args map[string]any, change func()) client.Outcome {
	t.Helper()
	gate, ended := h.atGate(t, args)
	change()
	if err := gate.Close(); err != nil {
		t.Fatal(err)
	}
	return outcomeOf(t, 200, <-ended, nil)
}

// TestAdvanceAttacks changes what a part of a line means after the host has answered in advance
// that it may run. With the shipped configuration the part is judged again and refused. The
// control is a host without sensitive files, where each attack shows one.
func TestAdvanceAttacks(t *testing.T) {
	t.Parallel()
	replace := func(name, target string) func(t *testing.T, ws string) {
		return func(t *testing.T, ws string) {
			t.Helper()
			place := filepath.Join(ws, name)
			for _, err := range []error{os.Rename(place, place+".old"), os.Symlink(target, place)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	attacks := []struct {
		name, line, cwd string
		change          func(t *testing.T, ws string)
	}{
		{"a link in place of a file", "cat gate; cat plain", "", replace("plain", ".env")},
		{"a link in place of a directory", "cat gate; cat sub/plain", "", replace("sub", ".ssh")},
		{"a link to a link", "cat gate; cat sub/plain", "", func(t *testing.T, ws string) {
			t.Helper()
			replace("sub", "other")(t, ws)
			if err := os.Symlink(".ssh", filepath.Join(ws, "other")); err != nil {
				t.Fatal(err)
			}
		}},
		{"a link in place of the directory of the call", "cat GATE; cat plain", "sub", replace("sub", ".ssh")},
		{"many times", "cat gate; for i in 1 2 3; do cat plain; done", "", replace("plain", ".env")},
		{"in a pipe", "cat gate; true | cat plain", "", replace("plain", ".env")},
		{"in a subshell", "cat gate; (cat plain)", "", replace("plain", ".env")},
		{"in a substitution", `cat gate; echo "$(cat plain)"`, "", replace("plain", ".env")},
		{"after a part that fails", "cat gate; false || cat plain", "", replace("plain", ".env")},
		{"for a redirection", "cat gate; cat <plain", "", replace("plain", ".env")},
		{"for xargs", "cat gate; echo plain | xargs cat", "", replace("plain", ".env")},
		{"for an option", "cat gate; head -n5 plain", "", replace("plain", ".env")},
	}
	guarded := serveShipped(t)
	control := serveShippedWith(t, func(text string) string {
		return strings.Replace(text, "  commands {\n", "  paths {\n    sensitive_verdict = \"allow\"\n  }\n  commands {\n", 1)
	})
	for _, h := range []*host{guarded, control} {
		ws := filepath.Join(h.dir, "ws")
		for i, tt := range attacks {
			gated(t, h)
			line := strings.Replace(tt.line, "GATE", filepath.Join(ws, "gate"), 1)
			args := map[string]any{"command": fmt.Sprintf("echo %d; %s", i, line)} // a refused line asks when it is repeated
			if tt.cwd != "" {
				args["cwd"] = tt.cwd
			}
			said := asJSON(h.whileGated(t, args, func() { tt.change(t, ws) }))
			shown := strings.Contains(said, canary)
			if h == guarded && (shown || !strings.Contains(said, "this needs approval")) {
				t.Errorf("%s: %s", tt.name, said)
			}
			if h == control && !shown {
				t.Errorf("control: %s: the attack shows nothing: %s", tt.name, said)
			}
		}
	}
}

// TestAdvanceWithinALine runs lines whose first part changes what a later one means, on a host
// that allows everything but the use of sensitive files. The control allows these too.
func TestAdvanceWithinALine(t *testing.T) {
	t.Parallel()
	places := map[string]string{
		"file.sh": "ln -sf .env plain", "dir.sh": "rm -r sub; ln -s .ssh sub", "parent.sh": "mkdir .ssh/deep; rmdir way; ln -s .ssh/deep way",
		"home.sh": "mv sub old; mkdir sub; ln -s ../.env sub/plain",
	}
	lines := []string{
		"bash file.sh; cat plain", "bash dir.sh; cat sub/plain", "bash parent.sh; cat way/../plain", "bash home.sh; cat sub/plain",
		"bash file.sh | cat; cat plain", "(bash file.sh); (cat plain)", "x=$(bash file.sh); cat plain", "f() { bash file.sh; cat plain; }; f",
		"for i in 1 2; do cat plain; bash file.sh; done", "trap 'cat plain' EXIT; bash file.sh", "if bash file.sh; then cat plain; fi",
		"bash file.sh && head -n5 plain", "cd sub; bash ../file.sh; cat plain", "bash file.sh; cat <plain", "bash file.sh; command cat plain", "bash file.sh; eval 'cat plain'",
	}
	for _, sensitive := range []string{"confirm", "allow"} {
		h := serve(t, writeConfig(t, fmt.Sprintf(strings.Replace(shellUnasked, "text = \"allow\"", "", 1), "host")+"policy {\n  paths {\n    sensitive_verdict = \""+sensitive+"\"\n  }\n}\n"+listening))
		for _, line := range lines {
			gated(t, h)
			if err := os.Mkdir(filepath.Join(h.dir, "ws", "way"), 0o755); err != nil {
				t.Fatal(err)
			}
			h.write(t, "sub/.env", canary)
			for name, text := range places {
				h.write(t, name, text)
			}
			said := asJSON(h.post(t, "shell_exec", map[string]any{"command": line}))
			shown := strings.Contains(said, canary)
			if sensitive == "confirm" && (shown || !strings.Contains(said, "this needs approval")) {
				t.Errorf("%q: %s", line, said)
			}
			if sensitive == "allow" && !shown {
				t.Errorf("control: %q shows nothing: %s", line, said)
			}
		}
	}
}

// TestAdvanceAndReload reloads the configuration while a line runs. A part that the host has
// answered in advance does not run if the new configuration does not allow it. The control
// reloads a configuration that still does.
func TestAdvanceAndReload(t *testing.T) {
	t.Parallel()
	h := serveShipped(t)
	gated(t, h)
	shipped := readFile(t, h.config)
	reload := func(text string) func() {
		return func() {
			if err := os.WriteFile(h.config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			h.ok(t, "reload")
		}
	}
	line := map[string]any{"command": "cat gate; cat plain"}
	if said := asJSON(h.whileGated(t, line, reload(shipped+"\n# the same\n"))); !strings.Contains(said, "harmless") {
		t.Errorf("control: %s", said)
	}
	without := strings.Replace(shipped, `"cat", `, "", 1)
	if said := asJSON(h.whileGated(t, line, reload(without))); strings.Contains(said, "harmless") || !strings.Contains(said, "this needs approval: cat plain") {
		t.Errorf("after a reload that does not allow it, a part ran: %s", said)
	}
}

// TestAdvanceAndRevocation revokes the token of a call that runs a line: no part of the line
// runs any more, also if the host has answered in advance. The control is a call whose token
// is valid.
func TestAdvanceAndRevocation(t *testing.T) {
	t.Parallel()
	h := serveShipped(t)
	gated(t, h)
	then := filepath.Join(h.dir, "ws", "then")
	if err := syscall.Mkfifo(then, 0o644); err != nil {
		t.Fatal(err)
	}
	read := func() bool { // the part `cat then` runs
		file, err := os.OpenFile(then, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			_ = file.Close() // ends the part
		}
		return err == nil
	}
	line := map[string]any{"command": "cat gate; cat then"}
	gate, ended := h.atGate(t, line)
	_ = gate.Close()
	eventually(t, "control: the part runs", read)
	<-ended

	gate, ended = h.atGate(t, line)
	h.ok(t, "token", "revoke", "local")
	<-ended
	eventually(t, "the line has ended", func() bool {
		_, err := gate.WriteString("x")
		return errors.Is(err, syscall.EPIPE)
	})
	_ = gate.Close()
	if read() {
		t.Error("a part runs after the token was revoked")
	}
}
