package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

// screen is a command that runs on its own terminal.
type screen struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	text   string // output read so far
}

// onTerminal runs toolhost on a terminal with input that was typed before.
func (h *host) onTerminal(t *testing.T, typed string, args ...string) *screen {
	t.Helper()
	return onTerminal(t, typed, exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), append(args, "--config", h.config)...))
}

// onTerminal runs a command on a terminal with input that was typed before.
func onTerminal(t *testing.T, typed string, cmd *exec.Cmd) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0) // so that Close ends a read
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	s := &screen{t: t, master: master, cmd: cmd}
	s.types(typed)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *screen) types(text string) {
	s.t.Helper()
	if _, err := s.master.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// shows reads the command's output until it contains a text.
func (s *screen) shows(text string) {
	s.t.Helper()
	part := make([]byte, 4096)
	if err := s.master.SetReadDeadline(time.Now().Add(2 * patience)); err != nil {
		s.t.Fatal(err)
	}
	for !strings.Contains(s.text, text) {
		n, err := s.master.Read(part)
		if err != nil {
			s.t.Fatalf("the terminal shows\n%s\nthen %v; want %q", s.text, err, text)
		}
		s.text += string(bytes.ReplaceAll(part[:n], []byte("\r"), nil))
	}
}

// ends reads the rest of the output of a command that has ended.
func (s *screen) ends() {
	part := make([]byte, 4096)
	for {
		n, err := s.master.Read(part)
		if s.text += string(bytes.ReplaceAll(part[:n], []byte("\r"), nil)); err != nil {
			return // EIO: no process has the terminal open
		}
	}
}

// TestApproveAsks decides on a terminal, with and without an ID: the command shows the call,
// and only a "yes" that is typed after the question counts. The control is the same command
// with that "yes".
func TestApproveAsks(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	call, id := h.begin(t, "probe_count", map[string]any{"note": "look at me"})
	for _, args := range [][]string{{"approve"}, {"approve", id, "--always"}, {"reject", id}} {
		s := h.onTerminal(t, "y\ny\n", append([]string{"approvals"}, args...)...)
		s.shows(`look at me`)
		s.shows("? [y/N] ")
		if got := h.open(t, 1)[0]; got.State != approval.Open {
			t.Errorf("while %v asks the approval is %s", args, got.State)
		}
		s.types("\n")
		s.shows("approval " + id + " stays open\n")
		if err := s.cmd.Wait(); err == nil {
			t.Errorf("%v without a yes succeeds", args)
		}
		if refuses := "approvals reject " + id; args[0] == "approve" {
			s.shows("hint: ")
			s.shows(refuses)
		} else if s.ends(); strings.Contains(s.text, "hint: ") {
			t.Errorf("the terminal shows\n%s\nwant no hint at what was just declined", s.text)
		}
	}
	if records, ran := h.open(t, 1), h.counted(); records[0].ID != id || len(ran) > 0 {
		t.Fatalf("%+v is open, and calls have run: %v", records, ran)
	}
	s := h.onTerminal(t, "", "approvals", "approve", id)
	s.shows("Let this call run once? [y/N] ")
	s.types("y\n")
	s.shows("approved " + id)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("control: a yes: %v\n%s", err, s.text)
	}
	if o := h.outcome(t, call); o.Status != client.Success {
		t.Errorf("the approved call = %s", asJSON(o))
	}
}

// TestApproveTakesWhatWasShown decides without a terminal: the command accepts only the
// approval that was shown last. The control is the same command after the approval was shown.
func TestApproveTakesWhatWasShown(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	_, a := h.begin(t, "probe_count", map[string]any{"note": "a"})
	_, b := h.begin(t, "probe_count", map[string]any{"note": "b"})
	refused := func(args ...string) {
		t.Helper()
		if _, stderr, code := h.cli(append([]string{"approvals"}, args...)...); code != 1 || !strings.Contains(stderr, "look at approval") {
			t.Errorf("%v exits with %d and says %q", args, code, stderr)
		}
	}
	path := filepath.Join(h.stateDir, shownFile)
	refused("approve", a)
	refused("approve", "--last")
	refused("reject", a)
	h.ok(t, "approvals", "show", a)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s has %v, %v; want it for its owner only", path, info, err)
	}
	refused("approve", b)
	h.ok(t, "approvals", "show", b, "--json")
	refused("approve", a)
	whole, err := h.approver(t).Approval(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "null", "[]", asJSON(shown{ID: a}),
		asJSON(shown{ID: a, ArgumentsHash: "sha256:0", PreviewDigest: whole.PreviewDigest}), asJSON(shown{ID: a, ArgumentsHash: whole.ArgumentsHash, PreviewDigest: "sha256:0"}),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		refused("approve", a)
	}
	if ran := h.counted(); len(ran) > 0 {
		t.Fatalf("calls have run: %v", ran)
	}
	h.answer(t, "approve", a)
	eventually(t, "control: the call has run", func() bool { return len(h.counted()) == 1 })
}

// TestServeOffersAConfiguration runs serve in a directory that has none.
func TestServeOffersAConfiguration(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	project := filepath.Join(home, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, ".config", "toolhost", "project.hcl")
	serve := func() *screen {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), "serve")
		cmd.Dir, cmd.Env = project, []string{"HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"), "PATH=" + os.Getenv("PATH")}
		s := onTerminal(t, "", cmd)
		s.shows("tools work in    " + project)
		s.shows("Write " + file + "? [y/N] ")
		return s
	}
	s := serve()
	s.types("n\n")
	s.shows("no file was written")
	s.ends()
	_ = s.cmd.Wait() // it failed, as it shows
	if _, err := os.Stat(file); err == nil {
		t.Errorf("%s was written", file)
	}
	s = serve()
	s.types("y\n")
	s.shows("wrote " + file)
	s.shows("toolhost is serving")
	if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.ends()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("serve: %v", err)
	}
}
