//go:build !race

package supervisor

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestAttackByReader has a tool that claims to be read_only change something in each way that a
// process has. The control is the same call of the same plugin without SplitTiers.
func TestAttackByReader(t *testing.T) {
	if os.Geteuid() == 0 {
		asOrdinaryUser(t, "TestAttackByReader")
	}
	for _, scope := range []Scope{Shared, PerUser, PerSession} {
		for _, isolation := range []sandbox.Isolation{sandbox.Auto, sandbox.Isolated} {
			t.Run(scope.String()+" "+isolation.String(), func(t *testing.T) { attackByReader(t, newTwins(t, scope, isolation)) })
		}
	}
}

func attackByReader(t *testing.T, w twins) {
	t.Helper()
	ws := w.split.workspace
	for _, tt := range []struct {
		name string
		// stage prepares a victim. changed reports whether it was changed.
		stage func(t *testing.T, name string) (args attemptArgs, changed func() bool)
	}{
		{"append to a file", w.onFile(ws, "append")},
		{"append to a file in a further directory", w.onFile(w.home, "append")},
		{"append to a file by a child", w.onFile(ws, "child")},
		{"map a file", w.onFile(ws, "map")},
		{"truncate a file", w.onFile(ws, "truncate")},
		{"remove a file", w.onFile(ws, "remove")},
		{"rename a file", w.onFile(ws, "rename")},
		{"change a file's mode", w.onFile(ws, "chmod")},
		{"change a file's mode by a descriptor", w.onFile(ws, "fchmod")},
		{"change a file's times", w.onFile(ws, "times")},
		{"create a file", w.onNew(ws, "create")},
		{"create a file in a further directory", w.onNew(w.home, "create")},
		{"make a directory", w.onNew(ws, "mkdir")},
		{"make a symbolic link", w.onNew(ws, "symlink")},
		{"make a hard link", w.onNew(ws, "link")},
		{"write to a named pipe", onPipe(ws)},
		{"connect to an address", onSocket("tcp", "127.0.0.1:0")},
		{"connect to a socket in the workspace", onSocket("unix", ws)},
		{"send to a socket in the workspace", onSocket("unixgram", ws)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := strings.ReplaceAll(tt.name, " ", "-")
			args, changed := tt.stage(t, "control-"+name)
			if failed := w.control.try(t, tool.ReadOnly, "ada", args); failed != "" || !changed() {
				t.Fatalf("control: without SplitTiers the attempt failed: %s", failed)
			}
			args, changed = tt.stage(t, "other-"+name)
			if failed := w.split.try(t, tool.SideEffecting, "ada", args); failed != "" || !changed() {
				t.Errorf("control: a call of another tier failed: %s", failed)
			}
			args, changed = tt.stage(t, name)
			failed := w.split.try(t, tool.ReadOnly, "ada", args)
			if changed() {
				t.Error("the reader changed it")
			}
			if failed == "" {
				t.Error("the tool believes that it changed it")
			}
		})
	}
	// The way works, only changes do not.
	if failed := w.split.try(t, tool.ReadOnly, "ada", attemptArgs{Kind: "read", Path: filepath.Join(ws, "victim-append-to-a-file")}); failed != "" {
		t.Errorf("the reader cannot read the workspace: %s", failed)
	}
	if failed := w.split.try(t, tool.ReadOnly, "ada", attemptArgs{Kind: "temporary"}); failed != "" {
		t.Errorf("the reader cannot write temporary files: %s", failed)
	}
}

// asOrdinaryUser runs a test again as a user without rights.
func asOrdinaryUser(t *testing.T, name string) {
	t.Helper()
	const nobody = 65534
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := openDir(t)
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "supervisor.test")
	if err := os.WriteFile(path, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-test.run=^"+name+"$", "-test.v", "-test.timeout="+flag.Lookup("test.timeout").Value.String())
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir, "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}
