package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
)

// owned is a client whose calls are those of one user and session.
type owned struct {
	h              *host
	token, session string
}

// run runs a command and returns what it printed.
func (o owned) run(t *testing.T, tool, command string) string {
	t.Helper()
	status, text, err := o.h.send("POST", "/v1/calls", o.token, asJSON(map[string]any{"tool": tool, "arguments": map[string]any{"command": command}}), "Toolhost-Session", o.session)
	outcome := outcomeOf(t, status, text, err)
	if outcome.Result == nil {
		t.Fatalf("%s = %s", command, asJSON(outcome))
	}
	var printed struct{ Stdout string }
	decode(t, asJSON(outcome.Result.Structured), &printed)
	return printed.Stdout
}

// TestUsersAreApart has the commands of one user look for those of another, and those of one session
// for those of another session of the same user. With one process for everybody, each search
// finds something.
func TestUsersAreApart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, scope, bob string }{
		{"shared", "shared", "bob"},
		{"user", "user", "bob"},
		{"session", "session", "ada"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ada, adas := agentToken(t, "ada", "ada")
			bob, bobs := agentToken(t, "bob", tt.bob)
			shell := strings.Replace(fmt.Sprintf(shellUnasked, "host"), "  config {", fmt.Sprintf("  isolation_scope = %q\n  config {\n    apart = false", tt.scope), 1)
			h := serve(t, writeConfig(t, listening+shell+"auth {\n"+ada+bob+"}\n"))
			victim, thief := owned{h, adas, "one"}, owned{h, bobs, "two"}
			mark := "victim" + rand.Text()
			socket := `import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
u = socket.socket(socket.AF_UNIX); u.bind("\0` + mark + `"); u.listen()
open("port", "w").write(str(s.getsockname()[1]))
import time; time.sleep(1000)`
			victim.run(t, "shell_background", "cd ~; echo "+mark+" > secret; echo "+mark+" > $TMPDIR/secret; KEY="+mark+" exec -a "+mark+" python3 -c '"+socket+"'")
			port := ""
			eventually(t, "the victim listens", func() bool {
				port = strings.TrimSpace(victim.run(t, "shell_exec", "cd ~; cat port"))
				return port != ""
			})
			const found = `for p in /proc/[0-9]*; do head -c 6 $p/cmdline 2>/dev/null | grep -q victim && `
			for _, search := range []struct{ name, command string }{
				{"its processes", found + `echo leaks; done`},
				{"its environment", found + `tr '\0' '\n' < $p/environ | grep -q ^KEY= && echo leaks; done`},
				{"its files by /proc", found + `ls $p/cwd/secret && echo leaks; done`},
				{"a signal", found + `kill -0 ${p#/proc/} && echo leaks; done`},
				{"its home", "cat ~/../../*/home/secret | grep -q victim && echo leaks"},
				{"its temporary files", "cat /tmp/*/secret /tmp/*/*/secret 2>/dev/null | grep -q victim && echo leaks"},
				{"its port", "exec 3<>/dev/tcp/127.0.0.1/" + port + " && echo leaks"},
				{"its abstract socket", `python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("\0` + mark + `")' && echo leaks`},
			} {
				got := thief.run(t, "shell_exec", search.command)
				if leaks := strings.Contains(got, "leaks\n"); leaks != (tt.scope == "shared") {
					t.Errorf("%s: leaks = %v: %s", search.name, leaks, got)
				}
			}
			if got := victim.run(t, "shell_exec", "cat ~/secret $TMPDIR/secret"); strings.Count(got, mark) < 2 {
				t.Errorf("the victim has lost files: %s", got)
			}
		})
	}
}

// TestUsersOfAnOrdinaryUserAreApart runs TestUsersAreApart with a host of an ordinary user.
func TestUsersOfAnOrdinaryUserAreApart(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // this is an ordinary user
	}
	asOrdinaryUser(t, "^TestUsersAreApart$", "TestUsersAreApart/session")
}
