package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestConnectAsks writes a client's file after a question on a terminal. Only a "yes" that is
// typed after the question counts.
func TestConnectAsks(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, "")
	dir := filepath.Dir(config)
	file := filepath.Join(dir, "ws", ".cursor", "mcp.json")
	ask := func(typed string, env ...string) *screen {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), "connect", "cursor", "--config", config)
		cmd.Dir = filepath.Join(dir, "ws")
		cmd.Env = append(os.Environ(), append([]string{"NO_COLOR=", "TERM=xterm"}, env...)...)
		return onTerminal(t, typed, cmd)
	}
	s := ask("y\ny\n")
	s.shows("\x1b[32m  | +    \"toolhost\": {\x1b[m\n")
	s.shows("Write ")
	s.shows("? [y/N] ")
	s.types("\n")
	s.shows("toolhost: nothing was written\n")
	if err := s.cmd.Wait(); err == nil {
		t.Error("connect without a yes succeeds")
	}
	if _, err := os.Lstat(filepath.Dir(file)); !os.IsNotExist(err) {
		t.Errorf("without a yes there is %s, %v", filepath.Dir(file), err)
	}
	s = ask("", "NO_COLOR=1")
	s.shows("? [y/N] ")
	if strings.Contains(s.text, "\x1b") {
		t.Errorf("with NO_COLOR the terminal shows %q", s.text)
	}
	s.types("y\n")
	s.shows("restart Cursor")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("a yes: %v\n%s", err, s.text)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"toolhost"`) {
		t.Errorf("%s has %s, %v", file, text, err)
	}
}

// TestConnectReadOnly says what to do when a client's file is on a read-only file system.
func TestConnectReadOnly(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, "")
	home := filepath.Join(t.TempDir(), "codex")
	mountSmall(t, home)
	if err := syscall.Mount("none", home, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), "connect", "codex", "--yes", "--name", "own", "--config", config)
	cmd.Env = append(os.Environ(), "CODEX_HOME="+home)
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"write the client's file: ", "read-only file system\n", "connect codex --name own --print --config " + config + " prints the text to paste"} {
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("connect says\n%s%v; want %q", out, err, want)
		}
	}
}

// TestConnectManagedIsDenied tells an ordinary user the command for root.
func TestConnectManagedIsDenied(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestConnectManagedIsDenied$", "-test.v")
		cmd.Dir = "/"
		cmd.Env = []string{binVariable + "=" + bin, "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestConnectManagedIsDenied") {
			t.Errorf("as user 65534: %v\n%s", err, out)
		}
		return
	}
	config := writeConfig(t, "")
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), "connect", "claude-code", "--managed", "--yes", "--name", "own", "--config", "config.hcl")
	cmd.Dir = filepath.Dir(config)
	out, err := cmd.CombinedOutput()
	want := "hint: sudo " + filepath.Join(bin, "toolhost") + " connect claude-code --managed --name own --yes --config " + config + " writes it\n"
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("connect says\n%s%v; want %q", out, err, want)
	}
}
