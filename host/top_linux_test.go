package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

// pane is a terminal of tmux, which shows what a person would see.
type pane struct {
	t      *testing.T
	socket string
}

// inTmux runs a command line of the shell in a terminal of tmux.
func inTmux(t *testing.T, columns, rows, command string) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	p := &pane{t, filepath.Join(t.TempDir(), "tmux")}
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, command)
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", p.socket, "kill-server").Run() }) // it may have ended
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// keys presses keys by tmux' names.
func (p *pane) keys(names ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys"}, names...)...)
}

// shows waits until the screen contains each text.
func (p *pane) shows(texts ...string) string {
	p.t.Helper()
	screen := ""
	for _, text := range texts {
		defer func() {
			if p.t.Failed() {
				p.t.Logf("want %q; the screen shows\n%s", text, screen)
			}
		}()
		eventually(p.t, "the screen shows "+text, func() bool {
			screen = p.tmux("capture-pane", "-p")
			return strings.Contains(screen, text)
		})
	}
	return screen
}

// TestTop decides about calls on the full screen, in each way, while hosts come and go.
func TestTop(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	p := inTmux(t, "80", "24", shellQuoted(filepath.Join(bin, "toolhost"))+" top --config "+shellQuoted(h.config)+"; echo ended $?; exec cat")
	p.shows("WAITING: 0", "PLUGINS: 1", "  probe ")
	note := func(text string) map[string]any { return map[string]any{"note": text} }
	state := func(id string) approval.State {
		t.Helper()
		got, err := h.approver(t).Approval(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return got.State
	}
	becomes := func(id string, want approval.State) {
		t.Helper()
		eventually(t, id+" is "+string(want), func() bool { return state(id) == want })
	}

	// Two at once; what an agent writes is one line of text.
	_, first := h.begin(t, "probe_count", note("\x1b[2J\u202e\n1"))
	_, second := h.begin(t, "probe_count", note("two"))
	screen := p.shows("WAITING: 2", "CALLS: 2", `two`)
	if strings.ContainsAny(screen, "\x1b\u202e") || !strings.Contains(screen, `\u001b[2J`) {
		t.Errorf("the screen shows\n%q, want escapes", screen)
	}
	p.keys("y") // without a call on the screen, this decides nothing
	p.keys("Enter")
	p.shows("Approval: "+first, "y let it run once")
	if got := state(first); got != approval.Open {
		t.Errorf("a key on the lists made %s %s", first, got)
	}
	p.keys("y")
	p.shows("approved "+first, "WAITING: 1")
	becomes(first, approval.Spent)
	p.keys("Enter")
	p.shows("Approval: " + second)
	p.keys("n")
	p.shows("message for the model: ")
	p.keys("-l", "--", "wrong file")
	p.keys("Enter")
	p.shows("rejected " + second)
	if got, err := h.approver(t).Approval(t.Context(), second); err != nil || got.Message != "wrong file" {
		t.Errorf("the message is %q, %v", got.Message, err)
	}

	// A grant, after a mistake.
	_, id := h.begin(t, "probe_count", note("granted"))
	p.shows("WAITING: 1")
	p.keys("Enter")
	p.shows("Approval: " + id)
	p.keys("a")
	p.shows("Terms")
	p.keys("-l", "--", "often")
	p.keys("Enter")
	p.shows("is not one of these flags")
	p.keys("a")
	p.shows("Terms")
	p.keys("-l", "--", "--uses 1")
	p.keys("Enter")
	p.shows("[y/N]")
	p.keys("y", "Enter")
	p.shows("approved " + id)
	if o := h.post(t, "probe_count", note("unasked")); o.Status != client.Success {
		t.Errorf("the call under the grant = %s", asJSON(o))
	}

	// All of a long call must have been on the screen; then it is decided elsewhere.
	_, id = h.begin(t, "probe_count", note(strings.Repeat("line\n", 60)))
	p.shows("WAITING: 1")
	p.keys("Enter")
	p.shows("more lines: Space")
	p.keys("y")
	p.shows("not all of the call was shown")
	if got := state(id); got != approval.Open {
		t.Errorf("a call that was not shown is %s", got)
	}
	p.tmux("resize-window", "-x", "100", "-y", "12")
	p.shows("more lines: Space")
	if _, stderr, code := h.cli("approvals", "show", id); code != 0 {
		t.Fatal(stderr)
	}
	if _, stderr, code := h.cli("approvals", "reject", id); code != 0 {
		t.Fatal(stderr)
	}
	p.shows(id + " was rejected by ")
	p.keys("y")
	p.shows("this call waits no longer")
	p.keys("q")

	// A call is canceled.
	_, id = h.begin(t, "probe_count", note("canceled"))
	p.shows("WAITING: 1")
	p.keys("j")
	p.shows("> probe_count          ", "awaiting_approval")
	p.keys("c")
	p.shows("Cancel probe_count? [y/N]")
	p.keys("y", "Enter")
	becomes(id, approval.Canceled)

	h.kill()
	p.shows("no host answers")
	h.restart(t)
	p.shows("PLUGINS: 1")
	_, id = h.begin(t, "probe_count", note("after"))
	p.shows("WAITING: 1")
	p.keys("Enter")
	p.shows("Approval: " + id)
	p.keys("C-c")
	p.shows("ended 0")
	if got := state(id); got != approval.Open {
		t.Errorf("Ctrl-C makes a call %s", got)
	}
}

// TestTopRestoresTheTerminal ends top by a signal: the terminal is as before.
func TestTopRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, "server { listen = \"\" }\n")
	for _, signal := range []string{"TERM", "HUP", "INT"} {
		p := inTmux(t, "80", "24", "echo before; sh -c 'echo $$ > "+filepath.Dir(config)+"/pid."+signal+"; exec "+filepath.Join(bin, "toolhost")+" top --config "+config+"'; stty; exec cat")
		p.shows("no host answers")
		pid := strings.TrimSpace(readFile(t, filepath.Join(filepath.Dir(config), "pid."+signal)))
		if out, err := exec.Command("kill", "-"+signal, pid).CombinedOutput(); err != nil {
			t.Fatalf("kill: %v: %s", err, out)
		}
		if screen := p.shows("before", "baud"); strings.Contains(screen, "-icanon") || strings.Contains(screen, "-echo ") {
			t.Errorf("after SIG%s the terminal shows\n%s", signal, screen)
		}
	}
}
