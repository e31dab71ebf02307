package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// sessionCases are the calls of one session, in their order.
func sessionCases() []shellCase {
	run := func(name string, args map[string]any, text string) shellCase {
		return shellCase{name: name, tool: "shell_exec", args: args, text: text}
	}
	command := func(name, line, text string) shellCase { return run(name, map[string]any{"command": line}, text) }
	fails := func(c shellCase, code string) shellCase {
		c.code, c.fail = tool.Failed, "Exit code: "+code
		return c
	}
	lost := func(c shellCase) shellCase {
		c.want = func(r execResult) bool { return r.SessionLost }
		return c
	}
	return []shellCase{
		command("it begins in the workspace", "pwd", "WS\n"),
		command("it is set up", "cd sub; X=1; export Y='a b'; f() { echo f $X; }; alias ll=ls; umask 027", ""),
		command("directory, variables, functions", `pwd; f; sh -c 'echo $Y'; umask`, "WS/sub\nf 1\na b\n0027\n"),
		run("input and both outputs", map[string]any{"command": "cat; echo err >&2", "stdin": "in\n"}, "stdout:\nin\n\n\nstderr:\nerr\n"),
		run("the input of one is not the next one's", map[string]any{"command": "cat; echo end"}, "end\n"),
		run("interleaved", map[string]any{"command": "echo 1; echo 2 >&2; echo 3", "interleave": true}, "1\n2\n3\n"),
		run("another directory, which stays", map[string]any{"command": "pwd", "cwd": "/usr"}, "/usr\n"),
		command("it has stayed", "pwd", "/usr\n"),
		fails(shellCase{name: "a directory that is not there", tool: "shell_exec", args: map[string]any{"command": "echo no", "cwd": "none"}, text: "-", has: []string{"none: No such file"}}, "1"),
		run("a time-out", map[string]any{"command": "echo in time", "timeout": 300}, "in time\n"),
		fails(command("exit code", "(exit 5)", ""), "5"),
		fails(shellCase{name: "a mistake in the language", tool: "shell_exec", args: map[string]any{"command": "if"}, text: "-", has: []string{"syntax error"}}, "2"),
		{name: "what ends a loop ends no shell", tool: "shell_exec", args: map[string]any{"command": "break 9; continue; return 3"}, text: "-", code: tool.Failed, fail: "Exit code: "},
		command("quotes, and the words of the shell around it", `echo "a'b\"c" ; echo $'\''; : } ; echo "; { exit 3"`, "a'b\"c\n'\n; { exit 3\n"),
		command("redirections of the shell itself are for one command", "exec >/dev/null 2>&1 3>&- 4>&- 5>&- 0>&-; echo lost", ""),
		command("so it is as before", "echo here", "here\n"),
		fails(command("its descriptors are not the commands'", "echo x >&4", "-"), "1"),
		command("a document", "cat <<E\n$X\nE", "1\n"),
		{name: "much output", tool: "shell_exec", args: map[string]any{"command": "seq 300000"}, text: "-", has: []string{"1\n2\n", "\n300000\n[output truncated"}},
		run("a command of 300 KB", map[string]any{"command": "echo " + strings.Repeat("x", 300<<10) + " | wc -c"}, "307201\n"),
		command("a trap writes to the command's output alone", "trap 'echo debug' DEBUG; echo a", "debug\na\n"),
		command("and to that of the next", "trap - DEBUG; trap 'echo failed' ERR", "debug\n"),
		{name: "a directory that is gone", tool: "shell_exec", args: map[string]any{"command": `cd $TMPDIR; mkdir gone; cd gone; rmdir "$PWD"`}, want: func(r execResult) bool { return r.Cwd == "" }},
		{name: "in which the shell goes on", tool: "shell_exec", args: map[string]any{"command": "cd /usr; trap - ERR"}, text: "-", want: func(r execResult) bool { return r.Cwd == "/usr" && !r.SessionLost }},
		command("a child in the background goes on", "sleep 1000 & echo $! > $TMPDIR/pid", ""),
		command("and is still there", "kill -0 $(cat $TMPDIR/pid) && echo yes; jobs -l | grep -c Running", "yes\n1\n"),
		lost(fails(shellCase{name: "exit", tool: "shell_exec", args: map[string]any{"command": "echo bye; exit 3"}, text: "-", has: []string{"bye\n[killed 1 process"}}, "3")),
		command("a new shell", "pwd; echo [$X]; f 2>/dev/null || echo none", "WS\n[]\nnone\n"),
		lost(command("exit 0", "exit", "[the shell of the session has ended; the next command starts a new one]\n")),
		lost(fails(command("a signal", "kill -9 $$", ""), "-1")),
		lost(fails(command("another program takes its place", "exec bash -c 'echo other; exit 6'", "other\n"), "6")),
		lost(shellCase{
			name: "a command that takes too long", tool: "shell_exec", args: map[string]any{"command": "echo begun; sleep 1000", "timeout": 5}, text: "begun\n", code: tool.Timeout,
			fail: "The command had not ended after 5s and was killed",
		}),
		command("and again a new shell", "echo back", "back\n"),
		lost(fails(shellCase{name: "it closes what it is told by", tool: "shell_exec", args: map[string]any{"command": "set -e; false"}, text: ""}, "1")),
		{name: "a NUL in the directory", tool: "shell_exec", args: map[string]any{"command": "pwd", "cwd": "s\x00ub"}, code: tool.InvalidArgument, fail: "cwd contains a NUL byte"},
		{name: "a NUL", tool: "shell_exec", args: map[string]any{"command": "a\x00b"}, code: tool.InvalidArgument, fail: "the command contains a NUL byte"},
		{name: "only spaces", tool: "shell_exec", args: map[string]any{"command": " "}, code: tool.InvalidArgument, fail: "missing required field 'command'"},
	}
}

func TestSession(t *testing.T) {
	p, workspace := startShell(t, map[string]any{"backend": "session"})
	if err := os.Mkdir(filepath.Join(workspace, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range sessionCases() {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, func(name string, args any) tool.Result { return p.Call(t.Context(), name, args) }, workspace)
		})
	}
}

// as makes a call for another owner.
func as(t *testing.T, p *sdktest.Plugin, user, session, name string, args map[string]any) tool.Result {
	t.Helper()
	return p.Run(t.Context(), tool.Call{Tool: name, Arguments: asJSON(t, args), Context: tool.Context{User: user, Session: session}}, tool.Sink{})
}

// Two sessions, of one user or of two, never meet, however many calls they make
// at a time: neither their shells nor their outputs.
func TestSessionsNeverMeet(t *testing.T) {
	p, _ := startShell(t, map[string]any{"backend": "session"})
	owners := [][2]string{{"ann", "s1"}, {"ann", "s2"}, {"bob", "s1"}, {"ann s1", "s1"}, {"ann", "s1 s1"}}
	var all sync.WaitGroup
	for _, o := range owners {
		all.Go(func() {
			name := o[0] + "/" + o[1]
			if got := as(t, p, o[0], o[1], "shell_exec", map[string]any{"command": "mine='" + name + "'; who() { echo I am $mine; }; mkdir -p $TMPDIR/d; cd $TMPDIR/d"}); got.Error != nil {
				t.Error(got.Error)
			}
			for range 20 {
				got := as(t, p, o[0], o[1], "shell_exec", map[string]any{"command": "who; echo err $mine >&2; basename $PWD"})
				if want := "stdout:\nI am " + name + "\nd\n\n\nstderr:\nerr " + name + "\n"; got.Text() != want {
					t.Errorf("%s gets %q, want %q", name, got.Text(), want)
				}
			}
		})
	}
	all.Wait()
}

// A session whose commands may not look at others' cannot signal or read them:
// the control run can.
func TestSessionsAreApart(t *testing.T) {
	for _, apart := range []bool{true, false} {
		p, _ := startShell(t, map[string]any{"backend": "session", "apart": apart, "env": map[string]string{"WHOSE": "anns"}})
		pid := strings.TrimSpace(as(t, p, "ann", "s1", "shell_exec", map[string]any{"command": "echo $$"}).Text())
		got := as(t, p, "bob", "s2", "shell_exec", map[string]any{"command": "grep -c anns /proc/" + pid + "/environ; kill -0 " + pid + " && echo signalled"})
		reached := strings.Contains(got.Text(), "1\n") && strings.Contains(got.Text(), "signalled")
		if reached == apart {
			t.Errorf("apart = %v: one session sees of another %q", apart, got.Text())
		}
	}
}

// A session ends: its shell does, and what that has started. It does not come
// back.
func TestSessionEnds(t *testing.T) {
	p, _ := startShell(t, map[string]any{"backend": "session"})
	mark := newMark()
	for _, session := range []string{"s1", "s2"} {
		if got := as(t, p, "ann", session, "shell_exec", map[string]any{"command": mark.sleeper(session) + " & true"}); got.Error != nil {
			t.Fatal(got.Error)
		}
		got := as(t, p, "ann", session, "shell_background", map[string]any{"command": mark.sleeper(session)})
		if got.Error != nil {
			t.Fatal(got.Error)
		}
	}
	mark.await(t, "s1", 2)
	mark.await(t, "s2", 2)
	if err := p.EndSession(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	mark.await(t, "s1", 0)
	mark.await(t, "s2", 2)
	for _, name := range []string{"shell_exec", "shell_background"} {
		if got := as(t, p, "ann", "s1", name, map[string]any{"command": "true"}); got.Error == nil || got.Error.Code != tool.Canceled {
			t.Errorf("%s in a session that has ended: %v, want canceled", name, got.Error)
		}
	}
	if got := as(t, p, "ann", "s1", "process_list", map[string]any{}); got.Text() != "This session has no jobs." {
		t.Errorf("the jobs of a session that has ended: %q", got.Text())
	}
	p.Close()
	mark.await(t, "s2", 0)
}

// A session that calls nothing for long enough ends by itself.
func TestSessionIdle(t *testing.T) {
	p, _ := startShell(t, map[string]any{"backend": "session", "session_idle": "50ms"})
	mark := newMark()
	shell := as(t, p, "ann", "s1", "shell_exec", map[string]any{"command": "echo $$; " + mark.sleeper("x") + " & true"})
	pid, err := strconv.Atoi(strings.TrimSpace(shell.Text()))
	if err != nil {
		t.Fatal(err, shell.Error)
	}
	for tick, end := time.Tick(5*time.Millisecond), time.After(patience); unix.Kill(pid, 0) == nil; {
		select {
		case <-tick:
		case <-end:
			t.Fatal("the shell has not ended")
		}
	}
	mark.await(t, "x", 0)
	if got := as(t, p, "ann", "s1", "shell_background", map[string]any{"command": mark.sleeper("x")}); got.Error != nil {
		t.Fatal(got.Error)
	}
	mark.await(t, "x", 0)
	// A command that runs keeps its session. Its shell is another one.
	if got := as(t, p, "ann", "s1", "shell_exec", map[string]any{"command": "sleep 0.3; echo done"}); got.Text() != "done\n"+replacedNote {
		t.Errorf("a command that takes longer: %q, %v", got.Text(), got.Error)
	}
	if got := as(t, p, "ann", "s2", "shell_exec", map[string]any{"command": "echo done"}); got.Text() != "done\n" {
		t.Errorf("the first command of another session: %q, %v", got.Text(), got.Error)
	}
}

// The shell that was idle for longest makes room for that of another session.
func TestShellsOfAUserAreBounded(t *testing.T) {
	p, _ := startShell(t, map[string]any{"backend": "session", "max_shells_per_user": 2})
	in := func(session, command string) string {
		return as(t, p, "ann", session, "shell_exec", map[string]any{"command": command}).Text()
	}
	for _, session := range []string{"s1", "s2"} {
		in(session, "x="+session)
	}
	in("s1", "true")
	in("s3", "x=s3")
	for session, want := range map[string]string{"s1": "s1\n", "s3": "s3\n"} {
		if got := in(session, "echo $x"); got != want {
			t.Errorf("the shell of %s has %q, want %q", session, got, want)
		}
	}
	if got := in("s2", "echo [$x]"); got != "[]\n"+replacedNote {
		t.Errorf("the shell that was idle for longest has %q", got)
	}
}

const replacedNote = "[this ran in a new shell: the session's previous shell has ended, with its directory, variables, functions and background processes]\n"

// Who was not told that the shell has ended hears it with the next command, once.
func TestNewShellIsTold(t *testing.T) {
	p, workspace := startShell(t, map[string]any{"backend": "session"})
	call := func(ctx context.Context, command string) tool.Result {
		return p.Call(ctx, "shell_exec", map[string]any{"command": command})
	}
	if got := call(t.Context(), "pwd"); got.Text() != workspace+"\n" || !structured(t, got).NewShell {
		t.Errorf("the first command: %q, %s", got.Text(), got.Structured)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := newMark()
	canceled := make(chan tool.Result, 1)
	go func() { canceled <- call(ctx, "cd /usr; "+m.sleeper("x")) }() // ends with the call
	m.await(t, "x", 1)
	cancel()
	if got := <-canceled; got.Error == nil || got.Error.Code != tool.Canceled {
		t.Errorf("the call that is given up: %v", got.Error)
	}
	if got := call(t.Context(), "pwd"); got.Text() != workspace+"\n"+replacedNote || !structured(t, got).NewShell {
		t.Errorf("the next command: %q, %s", got.Text(), got.Structured)
	}
	if got := call(t.Context(), "pwd"); got.Text() != workspace+"\n" || structured(t, got).NewShell {
		t.Errorf("and the one after it: %q, %s", got.Text(), got.Structured)
	}
	call(t.Context(), "exit") // its result tells
	if got := call(t.Context(), "pwd"); got.Text() != workspace+"\n" || !structured(t, got).NewShell {
		t.Errorf("after exit: %q, %s", got.Text(), got.Structured)
	}
}

// What does not know the order cannot speak for the shell by accident or on
// purpose: what it tells in the shell's place ends both, and nothing of the plugin
// waits for more.
func TestNobodySpeaksForTheShell(t *testing.T) {
	p, _ := startShell(t, map[string]any{"backend": "session"})
	const ofReaper = 3 // files that the plugin has for each
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files) - ofReaper*reapers(t)
	}
	command := `for fd in {6..20}; do printf '%s\0' x 0 $'/forged\n' x 0 / x 0 / >&$fd; done 2>/dev/null; sleep 1000`
	run := func() {
		t.Helper()
		got := p.Call(t.Context(), "shell_exec", map[string]any{"command": command})
		if facts := structured(t, got); !facts.SessionLost || got.Error == nil || facts.Cwd == "/forged" {
			t.Errorf("a command that tells an end of its own: %v, %s", got.Error, got.Structured)
		}
		if got := p.Call(t.Context(), "shell_exec", map[string]any{"command": "echo well"}); got.Text() != "well\n" {
			t.Errorf("the next command: %q, %v", got.Text(), got.Error)
		}
	}
	run()
	before := open()
	for range 5 {
		run()
	}
	for tick, end := time.Tick(5*time.Millisecond), time.After(patience); open() > before; {
		select {
		case <-tick:
		case <-end:
			t.Fatalf("the plugin has %d open files beside those of reapers, and had %d", open(), before)
		}
	}
}

// reapers returns the reapers that this process has: those of running commands, and those that
// wait for the next.
func reapers(t *testing.T) (n int) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(lists) == 0 {
		t.Fatalf("no list of children: %v", err)
	}
	for _, list := range lists {
		pids, _ := os.ReadFile(list) // the thread may have ended
		for pid := range strings.FieldsSeq(string(pids)) {
			name, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			if strings.HasPrefix(string(name), "toolhost-reaper") {
				n++
			}
		}
	}
	return n
}

// What a person approves is a command in a state of the shell: in another one it
// does not run.
func TestSessionPreview(t *testing.T) {
	p, workspace := startShell(t, map[string]any{"backend": "session"})
	preview := func(args map[string]any) tool.Preview {
		t.Helper()
		got, err := p.Preview(t.Context(), "shell_exec", args)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	call := func(digest []byte) tool.Result {
		return p.Run(t.Context(), tool.Call{Tool: "shell_exec", Arguments: asJSON(t, map[string]any{"command": "echo ran"}), Context: tool.Context{PreviewDigest: digest}}, tool.Sink{})
	}
	first := preview(map[string]any{"command": "echo ran", "cwd": "x", "stdin": "typed"})
	if first.Summary != "Runs in a new shell in the workspace" || string(first.Content[0].Data) != "cd x\necho ran\n\nStandard input:\ntyped" {
		t.Errorf("preview %q: %s", first.Summary, first.Content[0].Data)
	}
	if got := call(first.Digest); got.Text() != "ran\n" {
		t.Errorf("the call: %q, %v", got.Text(), got.Error)
	}
	if got := call(first.Digest); got.Error == nil || got.Error.Code != tool.Conflict {
		t.Errorf("the call again, approved for the state before: %v", got.Error)
	}
	second := preview(map[string]any{"command": "echo ran"})
	if want := "Runs in the shell of the session, after 1 command, in " + workspace; second.Summary != want {
		t.Errorf("preview %q, want %q", second.Summary, want)
	}
	if got := call(second.Digest); got.Text() != "ran\n" {
		t.Errorf("the call: %q, %v", got.Text(), got.Error)
	}
	p.Call(t.Context(), "shell_exec", map[string]any{"command": "mkdir gone; cd gone; rmdir $PWD"})
	if got, want := preview(map[string]any{"command": "ls"}).Summary, "Runs in the shell of the session, after 3 commands, in a directory that no longer exists"; got != want {
		t.Errorf("preview %q, want %q", got, want)
	}
	disabled, _ := startShell(t, map[string]any{"backend": "disabled"})
	if got := disabled.Call(t.Context(), "shell_exec", map[string]any{"command": "true"}); got.Error == nil || got.Error.Code != tool.Unavailable {
		t.Errorf("a command while they are disabled: %v", got.Error)
	}
}
