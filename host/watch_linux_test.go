package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

// asShell runs toolhost as a shell does: the terminal is its own, so that Ctrl-C and the end of the
// terminal reach it.
func asShell(t *testing.T, config, typed string, args ...string) *screen {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), append(args, "--config", config)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return onTerminal(t, typed, cmd)
}

// showsNext is like shows, for text that comes after what was shown before.
func (s *screen) showsNext(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		s.shows(text)
		_, s.text, _ = strings.Cut(s.text, text)
	}
}

const (
	askedOnce   = "Let this call run? [y]es [n]o [a]lways [d]etails [s]kip: "
	leftWaiting = "calls left waiting: 1; Enter shows them again "
)

// TestWatch decides about calls in a watch, in each way that a question can end.
func TestWatch(t *testing.T) {
	t.Parallel()
	block, secret := agentToken(t, "ci", "ci")
	_, digest := auth.NewToken()
	block += fmt.Sprintf("token \"lead\" {\n sha256 = %q\n user = \"lea\"\n roles = [\"approver\"]\n approves = [\"ci\"]\n}\n", digest)
	h := serve(t, writeConfig(t, listening+"auth {\n"+block+"}\n"+strings.Replace(counting, `  tool "probe_tally"`, "  tool \"probe_change\" { approval = \"deny\" }\n  tool \"probe_tally\"", 1)+"plugin \"gone\" { tier = \"read_only\" }\n"))
	note := func(text string) map[string]any { return map[string]any{"note": text} }
	wants := func(id string, want approval.State) {
		t.Helper()
		if got, err := h.approver(t).Approval(t.Context(), id); err != nil || got.State != want {
			t.Errorf("approval %s is %s, %v; want %s", id, got.State, err, want)
		}
	}
	_, first := h.begin(t, "probe_count", note("typed ahead\x1b[2J"))
	s := asShell(t, h.config, "y\ny\n", "approvals")
	s.showsNext("watching: ", "toolhost: plugin gone is refused: there is no ", first+" waits until ", "\nTool:     probe_count of plugin probe, side_effecting\n",
		"The plugin says of the tool:\n  | ", `typed ahead\u001b[2J`, askedOnce)
	wants(first, approval.Open)
	s.types("y\n")
	s.showsNext("approved " + first)
	eventually(t, "the approved call runs", func() bool { return len(h.counted()) == 1 })

	call, id := h.begin(t, "probe_count", note("rejected"))
	s.showsNext(id, askedOnce)
	s.types("maybe\n")
	s.showsNext(`"maybe" is no answer`, "n [MESSAGE]", askedOnce)
	s.types("n wrong file\n")
	s.showsNext("rejected " + id)
	if o := h.outcome(t, call); o.Status != client.Rejected || o.UserMessage != "wrong file" {
		t.Errorf("the rejected call = %s, want the message", asJSON(o))
	}

	_, id = h.begin(t, "probe_count", note("granted"))
	s.showsNext(id, askedOnce)
	for _, mistake := range []string{"--path src", "--uses x", "often", "--always --uses 1", `"`} {
		s.types("a\n")
		s.showsNext("Terms: ")
		s.types(mistake + "\n")
		s.showsNext("toolhost: ", askedOnce)
	}
	s.types("a\n")
	s.showsNext("Terms: ")
	s.types("--uses 1\n")
	s.showsNext("and later calls unasked (--uses 1)? [y/N] ")
	s.types("\n")
	s.showsNext(askedOnce)
	wants(id, approval.Open)
	s.types("a\n")
	s.showsNext("Terms: ")
	s.types("--uses 1 --path /etc\n")
	s.showsNext("[y/N] ")
	s.types("y\n")
	s.showsNext("toolhost: The call names no path", askedOnce) // the host refuses the terms
	s.types("a\n")
	s.showsNext("Terms: ")
	s.types("--uses 1\n")
	s.showsNext("[y/N] ")
	s.types("y\n")
	s.showsNext("approved "+id, "granted to ", " for 1 of 1 uses", "takes that back")
	if o := h.post(t, "probe_count", note("unasked")); o.Status != client.Success {
		t.Errorf("the call under the grant = %s", asJSON(o))
	}

	// What was typed for a call that is decided elsewhere does not answer the next question.
	_, one := h.begin(t, "probe_count", note("one"))
	s.showsNext(one, askedOnce)
	s.types("y")
	_, two := h.begin(t, "probe_count", note("two"))
	s.showsNext("toolhost: another call waits for approval; it is shown after this one\n", askedOnce)
	whole, err := h.approver(t).Approval(t.Context(), one)
	if err == nil {
		_, err = h.approver(t).Reject(t.Context(), one, client.Answer{}.Seen(whole.Record))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.showsNext(one+" was rejected by ", " over cli", two, askedOnce)
	s.types("\n")
	s.showsNext(leftWaiting)
	wants(two, approval.Open)
	if o := h.post(t, "probe_change", nil); o.Error == nil {
		t.Errorf("the denied call = %s", asJSON(o))
	}
	s.showsNext("toolhost: denied: probe_change: ", "journal query --call tc_", leftWaiting)
	s.types("\n")
	s.showsNext(two, askedOnce)
	s.types("d\n")
	s.showsNext("\nApproval: "+two+"\nState:    open, until ", "leave it waiting", askedOnce)
	call, three := h.begin(t, "probe_count", note(strings.Repeat("line\n", 100)))
	s.types("n\n")
	s.showsNext("rejected "+two, three, " more lines; d shows everything", askedOnce)
	s.types("y\n")
	s.showsNext("not all of the call was shown", askedOnce)
	wants(three, approval.Open)
	h.must(t, 200, "POST", "/v1/calls/"+call+"/cancel", h.token, "")
	s.showsNext(three + " was canceled: its caller gave up")

	// Another user's call is for its approvers.
	others := *h
	others.token = secret
	call, id = others.begin(t, "probe_count", note("of ci"))
	s.showsNext("toolhost: "+id+" waits for others to decide about probe_count, a call of ci: lea with the token lead\n", leftWaiting)
	for _, says := range []struct {
		command string
		exit    int
		text    string
	}{
		{"show " + id, 0, "hint: you may not decide about calls of ci; who may: lea with the token lead\n"},
		{"approve " + id, 1, "hint: who may: lea with the token lead\n"},
		{"approve", 1, "toolhost: every call that waits is for others to decide\nhint: "},
	} {
		_, stderr, code := h.cli(append([]string{"approvals"}, strings.Fields(says.command)...)...)
		if code != says.exit || !strings.Contains(stderr, says.text) || strings.Contains(stderr, "approvals approve "+id) {
			t.Errorf("%s of another user's call exits with %d and says %q", says.command, code, stderr)
		}
	}
	others.must(t, 200, "POST", "/v1/calls/"+call+"/cancel", secret, "")

	probe, err := h.approver(t).Plugin(t.Context(), "probe")
	if err != nil || probe.PID == 0 {
		t.Fatalf("the plugin is %+v, %v; want that it runs", probe, err)
	}
	if err := syscall.Kill(probe.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.showsNext("toolhost: plugin probe crashed: it ")
	_, id = h.begin(t, "probe_count", note("while the watch ends"))
	s.showsNext(id, askedOnce)
	s.types("\x03")
	s.ends()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C ends the watch with %v, want success", err)
	}
	wants(id, approval.Open)
}

// serveOnTerminal runs serve on a terminal until it is ready.
func serveOnTerminal(t *testing.T, config string, flags ...string) (*host, *screen) {
	t.Helper()
	h := &host{config: config, dir: filepath.Dir(config)}
	h.stateDir = filepath.Join(h.dir, "state")
	s := asShell(t, config, "", append([]string{"serve"}, flags...)...)
	h.cmd = s.cmd
	t.Cleanup(h.stop)
	s.showsNext("toolhost is serving", "REST     ")
	s.shows("/v1\n")
	h.url, _, _ = strings.Cut(s.text, "/v1\n")
	h.token = strings.TrimSpace(readFile(t, filepath.Join(h.stateDir, "agent.token")))
	return h, s
}

// exits waits for the end of serve, which must be an orderly one.
func (h *host) exits(t *testing.T, why string) {
	t.Helper()
	err := h.cmd.Wait()
	if h.ended = true; err != nil {
		t.Errorf("after %s serve ends with %v, want success", why, err)
	}
}

const asksHere = "toolhost: calls that wait for approval are shown here"

// TestServeAsks decides on the terminal of serve, and stops the host there with Ctrl-C.
func TestServeAsks(t *testing.T) {
	t.Parallel()
	h, s := serveOnTerminal(t, writeConfig(t, listening+counting), "--bell")
	s.showsNext(asksHere)
	call, id := h.begin(t, "probe_count", map[string]any{"note": "a"})
	s.showsNext("\a", id, askedOnce)
	if err := h.cmd.Process.Signal(syscall.SIGHUP); err != nil { // the terminal is there: reload
		t.Fatal(err)
	}
	if o := h.post(t, "probe_tally", map[string]any{"note": "b"}); o.Status != client.Success {
		t.Errorf("a call while another waits = %s", asJSON(o))
	}
	s.shows("plugin started")
	line := s.text[strings.LastIndexByte(s.text[:strings.Index(s.text, "plugin started")], '\n')+1:]
	if !regexp.MustCompile(`^\d{4}-\S+ \[INFO\] `).MatchString(line) {
		t.Errorf("the log line is torn: %q", line)
	}
	s.showsNext("plugin started", askedOnce)
	s.types("y\n")
	s.showsNext("approved " + id)
	if o := h.outcome(t, call); o.Status != client.Success {
		t.Errorf("the approved call = %s", asJSON(o))
	}

	// What is typed after an answer does not answer the next question, and neither does what has
	// no Enter. A process that was stopped meanwhile shows the call again.
	_, first := h.begin(t, "probe_count", map[string]any{"note": "c"})
	s.showsNext(first, askedOnce)
	_, second := h.begin(t, "probe_count", map[string]any{"note": "d"})
	s.types("y\n")
	s.showsNext("approved "+first, second)
	s.types("y\n")
	s.showsNext(askedOnce)
	if err := h.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.showsNext(second, askedOnce)
	s.types("y\x04")
	s.showsNext("waiting calls are no longer shown here")
	if got, err := h.approver(t).Approval(t.Context(), second); err != nil || got.State != approval.Open {
		t.Errorf("approval %s is %s, %v; want open", second, got.State, err)
	}
	s.types("\x03")
	s.ends()
	h.exits(t, "Ctrl-C")
}

// TestServeOnClosedTerminal closes the terminal of serve while it asks about a call: the host
// stops. Before, a question ends with the time of its call.
func TestServeOnClosedTerminal(t *testing.T) {
	t.Parallel()
	h, s := serveOnTerminal(t, writeConfig(t, listening+counting+"approvals { timeout = \"10s\" }\n")) // the shortest
	s.showsNext(asksHere)
	_, id := h.begin(t, "probe_count", map[string]any{"note": "a"})
	s.showsNext(id+" waits until ", askedOnce, id+" expired: no one decided in time\n")
	h.begin(t, "probe_count", map[string]any{"note": "b"})
	s.showsNext(askedOnce)
	if err := s.master.Close(); err != nil {
		t.Fatal(err)
	}
	h.exits(t, "the end of its terminal")
}

// TestServeWithoutPrompt runs serve on a terminal where it must not ask.
func TestServeWithoutPrompt(t *testing.T) {
	t.Parallel()
	h, s := serveOnTerminal(t, writeConfig(t, listening+counting), "--no-prompt")
	_, id := h.begin(t, "probe_count", map[string]any{"note": "a"})
	s.types("y\n\x03")
	s.ends()
	h.exits(t, "Ctrl-C")
	if strings.Contains(s.text, asksHere) || strings.Contains(s.text, id) {
		t.Errorf("serve --no-prompt shows\n%s", s.text)
	}
}
