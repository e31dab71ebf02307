package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// emacs runs Emacs without a screen in clients/emacs, or leaves the test out on a machine without it.
func emacs(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	program, err := exec.LookPath("emacs")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"--quick", "--batch", "--directory", "."}, args...)...)
	cmd.Dir = "../clients/emacs"
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestEmacs runs the tests of the client for Emacs, which decide about calls of a real host by keys.
func TestEmacs(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, "server {\n listen = \"\"\n grace = \"1s\"\n}\n"+counting)
	env := []string{"TOOLHOST_PROGRAM=" + filepath.Join(bin, "toolhost"), "TOOLHOST_CONFIG=" + config}
	out, err := emacs(t, env, "--load", "toolhost-test.el", "--funcall", "ert-run-tests-batch-and-exit")
	if err != nil || !strings.Contains(out, "Ran 10 tests, 10 results as expected, 0 unexpected") {
		t.Errorf("the tests in Emacs: %v\n%s", err, out)
	}
}

// TestEmacsWarnings compiles the client for Emacs and checks its documentation.
func TestEmacsWarnings(t *testing.T) {
	t.Parallel()
	compiled := filepath.Join(t.TempDir(), "toolhost.elc")
	out, err := emacs(t, nil,
		"--eval", `(setq byte-compile-error-on-warn t byte-compile-dest-file-function (lambda (_) "`+compiled+`"))`,
		"--funcall", "batch-byte-compile", "toolhost.el")
	if err != nil {
		t.Errorf("the compiler: %v\n%s", err, out)
	}
	if _, err := os.Stat(compiled); err != nil {
		t.Error(err)
	}
	if out, err = emacs(t, nil, "--eval", `(checkdoc-file "toolhost.el")`); err != nil || out != "" {
		t.Errorf("checkdoc: %v\n%s", err, out)
	}
}
