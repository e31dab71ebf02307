package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHostOfAnotherAccount asks for approvals from an account that is not the host's. That
// account's own state is empty, and it may not enter a named one: neither is an answer.
func TestHostOfAnotherAccount(t *testing.T) {
	t.Parallel()
	t.Run("the default state", func(t *testing.T) { t.Parallel(); askFromAnotherAccount(t, "# state_dir", 0) })
	if os.Geteuid() == 0 {
		t.Run("a named state", func(t *testing.T) { t.Parallel(); askFromAnotherAccount(t, "state_dir", 1) })
	}
}

// askFromAnotherAccount asks with a configuration in which stateDir replaces "state_dir". alone is
// the exit code without a host.
func askFromAnotherAccount(t *testing.T, stateDir string, alone int) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.hcl")
	blocks := strings.Replace(settingsFor(listening), "state_dir", stateDir, 1)
	if err := os.WriteFile(config, []byte(blocks), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	account, home := squatterUID, filepath.Join(dir, "home")
	credential := &syscall.Credential{Uid: squatterUID, Gid: squatterUID}
	if os.Geteuid() != 0 {
		t.Log("this test lacks root, which can start a process of another account: the command has this one, and another home")
		account, credential = os.Geteuid(), nil
	}
	ask := func(args ...string) (out, errs string, code int) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), append(args, "--config", config)...)
		cmd.Env, cmd.Dir = []string{"HOME=" + home}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // the exit code says it
		return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	}
	serving := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), "serve", "--json", "--config", config)
	serving.Env = []string{"HOME=" + filepath.Join(dir, "other")}
	out, err := serving.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serving.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end := func() {
		if !ended {
			_ = serving.Process.Signal(syscall.SIGTERM)
			_ = serving.Wait()
			ended = true
		}
	}
	t.Cleanup(end)
	if _, err := out.Read(make([]byte, 1)); err != nil { // it serves
		t.Fatal(err)
	}
	stdout, stderr, code := ask("approvals", "list")
	want := fmt.Sprintf("another host has this configuration: process %d (toolhost) of account ", serving.Process.Pid)
	hint := "hint: to use that host, run this command as the account root\n"
	switch {
	case alone != 0:
		hint = "belongs to user 0, expected "
	case account == os.Geteuid():
		hint = "hint: to use that host, run this command with its XDG_STATE_HOME and HOME, "
	}
	if code != 1 || stdout != "" || !strings.Contains(stderr, want) || !strings.Contains(stderr, hint) {
		t.Errorf("approvals list exits with %d and says %q, %q; want %q and %q", code, stdout, stderr, want, hint)
	}
	if _, err := os.Stat(home); err == nil {
		t.Error("approvals list has begun a state")
	}
	end() // the control
	if stdout, stderr, code := ask("approvals", "list"); code != alone || strings.Contains(stdout, "no call waits") != (alone == 0) || strings.Contains(stderr, "another host") {
		t.Errorf("control: without a host approvals list exits with %d and says %q, %q", code, stdout, stderr)
	}
}
