package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
)

// shellUnasked enables the shell plugin. Its calls need no approval, and bash reads their
// text.
const shellUnasked = `
policy {
  mode = "autonomous"
  commands {
    text = "allow"
    risk {
      high = "allow"
    }
  }
}
plugin "shell" {
  tier   = "privileged"
  claims = "trust"
  approval {
    side_effecting = "allow"
    privileged     = "allow"
  }
  config {
    backend = %q
  }
  sandbox {
    filesystem {
      exec = ["system", "workspace", "tmp"]
    }
  }
}
`

// marked counts the processes whose program's name is the mark.
func marked(mark string) int {
	n := 0
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, _ := os.ReadFile(file); bytes.HasPrefix(line, []byte(mark+"\x00")) { // it may have ended
			n++
		}
	}
	return n
}

// sleeping returns a command that leaves processes with the mark wherever they survive a plain
// kill, and keeps running as one: five in all.
func sleeping(mark string) string {
	one := "bash -c 'exec -a " + mark + " sleep 1000'"
	return "trap '' TERM INT HUP; " + one + " & setsid " + one + " & (setsid bash -c '(exec -a " + mark + " sleep 1000 &)' &); " +
		"(exec -a " + mark + " bash -c 'kill -STOP $$; sleep 1000') & exec " + one
}

// TestShellLeavesNothingBehind checks that no process of a command, a job or a session's shell
// outlives a host that is killed or stopped.
func TestShellLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for end, stop := range map[string]func(*host){"kill -9": (*host).kill, "stop": (*host).stop} {
		for _, backend := range []string{"host", "session"} {
			t.Run(backend+"/"+end, func(t *testing.T) {
				h := serve(t, writeConfig(t, listening+fmt.Sprintf(shellUnasked, backend)))
				mark := "survivor-" + rand.Text()
				if got := h.post(t, "shell_background", map[string]any{"command": sleeping(mark)}); got.Error != nil {
					t.Fatal(got.Error)
				}
				done := make(chan struct{})
				go func() { // ends with the host
					defer close(done)
					_, _, _ = h.cli("call", "shell_exec", "command="+sleeping(mark))
				}()
				eventually(t, "all processes are there", func() bool { return marked(mark) == 10 })
				stop(h)
				eventually(t, "none is left", func() bool { return marked(mark) == 0 })
				<-done
			})
		}
	}
}

// TestShellEndsWithItsSession disconnects an MCP client: the jobs and the shell of its session
// end, and another client's continue.
func TestShellEndsWithItsSession(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+fmt.Sprintf(shellUnasked, "session")))
	marks := []string{"survivor-" + rand.Text(), "survivor-" + rand.Text()}
	var sessions []*session
	for _, mark := range marks {
		s := connectHTTP(t, h, h.token, "2025-11-25", "client", nil)
		sessions = append(sessions, s)
		one := "bash -c 'exec -a " + mark + " sleep 1000'"
		for _, call := range []struct{ tool, command string }{{"shell_background", one}, {"shell_exec", one + " & true"}} {
			s.must(t, call.tool, map[string]any{"command": call.command})
		}
		eventually(t, "the job and the child of the shell are there", func() bool { return marked(mark) == 2 })
	}
	if err := sessions[0].Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "what was the session's has ended", func() bool { return marked(marks[0]) == 0 })
	if n := marked(marks[1]); n != 2 {
		t.Errorf("%d processes of the other session are left", n)
	}
}

// TestShellWithoutSandbox checks that there are no commands without a sandbox: no_new_privs
// alone does not count as one.
func TestShellWithoutSandbox(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+strings.Replace(fmt.Sprintf(shellUnasked, "host"), "sandbox {", "sandbox {\n    isolation = \"off\"", 1)))
	got := h.post(t, "shell_exec", map[string]any{"command": "echo ran"})
	if got.Error == nil || !strings.Contains(got.Error.Message, "the plugin has no sandbox") {
		t.Errorf("shell_exec answers %+v", got)
	}
}

// TestShippedProfileRunsGo runs a module's program with the default profile, after a person
// has approved it. With all rounds it also runs the module's tests, which compile half of the
// standard library.
func TestShippedProfileRunsGo(t *testing.T) {
	t.Parallel()
	_, block, found := strings.Cut(readFile(t, "../config.hcl"), "\nplugin \"shell\" {")
	if !found {
		t.Fatal("config.hcl has no shell")
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	if root := strings.TrimSpace(string(goroot)); !strings.HasPrefix(root, "/usr/") { // not in a system directory
		block = strings.Replace(block, `exec = ["system",`, `exec = ["`+root+`", "system",`, 1)
		block = strings.Replace(block, `"/usr/local/go/bin:`, `"`+root+`/bin:`, 1)
	}
	h := serve(t, writeConfig(t, listening+"plugin \"shell\" {"+block))
	h.write(t, "go.mod", "module example.com/small\n\ngo 1.26\n")
	h.write(t, "small.go", "package main\n\nfunc main() { print(\"it runs\\n\") }\n")
	h.write(t, "small_test.go", "package main\n\nimport \"testing\"\n\nfunc TestSmall(t *testing.T) { t.Log(t.TempDir()) }\n")
	want := map[string]string{"mkdir ~/bin && cp /bin/true ~/bin/mine && ~/bin/mine && go run .": "it runs\n"}
	if soak.Rounds(0, 1) > 0 {
		want["go tool nm small 2>&1 | head -1"] = "open small: no such file"
		want["go test ./..."] = "ok  \texample.com/small\t"
	}
	for command, start := range want {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "toolhost"), "call", "shell_exec", "command="+command, "timeout=600", "--config", h.config)
		var out, told bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &told
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.ok(t, "approvals", "list", "--wait")
		h.answer(t, "approve")
		if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), start) {
			t.Errorf("%s: %v\n%s\n%s", command, err, out.String(), told.String())
		}
	}
}
