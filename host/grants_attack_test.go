package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

const granting = `
server { listen = "127.0.0.1:0" }
plugin "commands" {
  tier   = "privileged"
  claims = "trust"
}
plugin "fs" {
  tier   = "privileged"
  claims = "trust"
}
approvals {
  patience = "0s"
}
policy {
  commands {
    allow = ["ls"]
    risk {
      allow_standing = true
    }
  }
}
`

// TestGrantsCoverNoMore grants a command and a folder, and makes similar calls that the grants
// do not cover, as an agent over every front end of a running host.
func TestGrantsCoverNoMore(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, granting))
	for _, dir := range []string{"src/deep", "srcs"} {
		if err := os.MkdirAll(filepath.Join(h.dir, "ws", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"src/link": "../srcs", "src/file": "../srcs/target", "inwards": "src/deep"} {
		if err := os.Symlink(target, filepath.Join(h.dir, "ws", name)); err != nil {
			t.Fatal(err)
		}
	}
	type call struct {
		tool string
		args map[string]any
	}
	command := func(line string) call { return call{"shell_exec", map[string]any{"command": line}} }
	write := func(path string) call {
		return call{"write_file", map[string]any{"path": path, "content": path}}
	}
	move := func(from, to string) call { return call{"move_file", map[string]any{"source": from, "dest": to}} }
	all, person := ways(t, h), h.approver(t)
	// asked makes a call that must ask, rejects it, and returns what is wrong.
	asked := func(w way, c call) string {
		ended := make(chan answer, 1)
		go func() { // ends with the call, which is rejected below
			said, failed, err := w.call(t.Context(), c.tool, c.args)
			ended <- answer{said, failed, err}
		}()
		open, err := person.Approvals(t.Context(), client.ApprovalFilter{States: []approval.State{approval.Open}, Wait: 10 * time.Second})
		if err != nil || len(open) != 1 {
			return fmt.Sprintf("%d approvals are open, %v", len(open), err)
		}
		if _, err := person.Reject(t.Context(), open[0].ID, client.Answer{}.Seen(open[0].Record)); err != nil {
			return err.Error()
		}
		if a := <-ended; a.err != nil || !a.failed {
			return fmt.Sprintf("it came to %+v", a)
		}
		return ""
	}
	grant := func(c call, terms ...string) {
		t.Helper()
		if said, failed, err := all[0].call(t.Context(), c.tool, c.args); err != nil || !failed {
			t.Fatalf("%v came to %q, %v; want it to wait", c, said, err)
		}
		h.answer(t, append([]string{"approve"}, terms...)...)
	}
	grant(command("git push first"), "--always", "--command", "git push *")
	grant(write("src/first"), "--for", "1h", "--path", "src")

	covered := []call{
		command("git push"), command("git push origin main"), command("ls && timeout 9 git push"), command("git --no-pager push"),
		write("src/a"), write("src/deep/b"), write("./src//../src/c"), write("inwards/d"),
	}
	others := []call{
		command("git push --force"), command("git push origin +main"), command("git push origin :main"), command("git push origin main -f"),
		command("git push https://evil.test/x"), command("git pull"), command("git push; git pull"), command("echo x | git push"),
		command("GIT_SSH=x git push"), command("git -c core.sshCommand=x push"), command("sh -c 'git push --force'"), command("git push $X"),
		command("git push > out"), command("./git push"), command("nohup git push"), command("git push $(git pull)"),
		write("srcs/a"), write("a"), write("src/../a"), write("src/link/a"), write("src/file"),
		move("src/first", "srcs/x"),
		{"delete_file", map[string]any{"path": "src/first"}},
		{"process_input", map[string]any{"input": "git push"}},
	}
	for _, w := range all {
		for _, c := range covered {
			if said, failed, err := w.call(t.Context(), c.tool, c.args); err != nil || failed {
				t.Errorf("over %s %v came to %q, %v; want it to run unasked", w.name, c.args, said, err)
			}
		}
		for _, c := range others {
			if wrong := asked(w, c); wrong != "" {
				t.Errorf("over %s %v is to be asked about: %s", w.name, c.args, wrong)
			}
		}
	}
	for _, name := range []string{"srcs/a", "a", "srcs/target", "srcs/x"} {
		if _, err := os.Lstat(filepath.Join(h.dir, "ws", name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	var grants []approval.Grant
	decode(t, h.ok(t, "grants", "list", "--json"), &grants)
	if len(grants) != 2 {
		t.Fatalf("grants = %+v, want 2", grants)
	}
	for _, g := range grants {
		if g.Uses != 4*int64(len(all)) {
			t.Errorf("%s: %d uses, want %d", g.Covers, g.Uses, 4*len(all))
		}
		h.ok(t, "grants", "revoke", g.ID)
	}
	for _, c := range covered {
		if wrong := asked(all[0], c); wrong != "" {
			t.Errorf("after the grants were revoked, %v is to be asked about: %s", c.args, wrong)
		}
	}
}
