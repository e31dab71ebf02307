package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/internal/testprogram"
	"github.com/toolhost/toolhost/sdk/gitenv"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// shellCase is a call and what comes of it.
type shellCase struct {
	name, tool string
	args       map[string]any
	// text is all of the text, if it is not "-", and has are parts of it. WS stands
	// for the workspace.
	text string
	has  []string
	code tool.Code // of the error, "" if there is none
	fail string    // the error's message begins so
	want func(execResult) bool
}

// check makes the call.
func (c shellCase) check(t *testing.T, call func(string, any) tool.Result, workspace string) {
	t.Helper()
	got := call(c.tool, c.args)
	filled := func(s string) string { return strings.ReplaceAll(s, "WS", workspace) }
	text := got.Text()
	if c.text == "" && c.code == "" && c.tool == "shell_exec" {
		c.text = "(no output, exit code 0)"
	}
	if c.text != "-" && text != filled(c.text) {
		t.Errorf("the text is %q, want %q (%v)", text, filled(c.text), got.Error)
	}
	for _, part := range c.has {
		if !strings.Contains(text, filled(part)) {
			t.Errorf("the text is %q, want %q in it (%v)", text, filled(part), got.Error)
		}
	}
	switch {
	case c.code == "" && got.Error != nil:
		t.Errorf("it fails: %v (%s)", got.Error, got.Error.Hint)
	case c.code != "" && (got.Error == nil || got.Error.Code != c.code || !strings.HasPrefix(got.Error.Message, filled(c.fail))):
		t.Errorf("the error is %v, want %s: %s", got.Error, c.code, filled(c.fail))
	}
	if c.want != nil {
		if facts := structured(t, got); !c.want(facts) {
			t.Errorf("the structured result is %+v", facts)
		}
	}
}

func execCases() []shellCase {
	run := func(name string, args map[string]any, text string) shellCase {
		return shellCase{name: name, tool: "shell_exec", args: args, text: text}
	}
	command := func(name, line, text string) shellCase { return run(name, map[string]any{"command": line}, text) }
	fails := func(c shellCase, code string) shellCase {
		c.code, c.fail = tool.Failed, "Exit code: "+code
		return c
	}
	facts := func(c shellCase, want func(execResult) bool) shellCase {
		c.want = want
		return c
	}
	return []shellCase{
		command("a command", "echo hello", "hello\n"),
		command("no output", "true", ""),
		command("several lines", "x=1\ny=2\necho $x$y", "12\n"),
		command("a comment first", "# what it does\necho a", "a\n"),
		command("a document", "cat <<'E'\n$x 'y'\nE", "$x 'y'\n"),
		command("bash, not sh", "a=(1 2 3); echo ${#a[@]} ${BASH_VERSION:+bash}; [[ a == a ]] && echo yes", "3 bash\nyes\n"),
		command("no arguments", `echo "[$#] [$1] [$@] [$0]"`, "[0] [] [] [bash]\n"),
		command("what it asks of itself", `echo "$BASH_EXECUTION_STRING"`, "echo \"$BASH_EXECUTION_STRING\"\n"),
		command("the usual IFS", `printf %q "$IFS"`, `$' \t\n'`),
		command("nothing but its own descriptors", "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 "), // ls has opened the last
		command("nor has its shell", "set -- /proc/$$/fd/*; echo ${@##*/}; trap -p", "0 1 2 3\n"), // it has opened the last
		facts(command("a trap of its own", "trap 'echo bye' EXIT; echo hi; cd /usr", "hi\nbye\n"), func(r execResult) bool { return r.Cwd == "/usr" }),
		command("no terminal", "[ -t 0 ] || [ -t 1 ] || echo none", "none\n"),
		command("its input is empty", "cat; echo end", "end\n"),
		run("input", map[string]any{"command": "wc -c", "stdin": "12345"}, "5\n"),
		run("much input that nobody reads", map[string]any{"command": "echo done", "stdin": strings.Repeat("x", 300<<10)}, "done\n"),
		run("another directory", map[string]any{"command": "pwd", "cwd": "sub"}, "WS/sub\n"),
		run("an absolute directory", map[string]any{"command": "pwd", "cwd": "/usr"}, "/usr\n"),
		run("variables", map[string]any{"command": "echo $A-$B", "env": []string{"A=1 2", "B="}}, "1 2-\n"),
		run("a program", map[string]any{"argv": []string{"printf", "%s|", "a b", "$HOME", "*"}}, "a b|$HOME|*|"),
		run("its own PATH, and still the plugin's bash", map[string]any{"command": "echo $PATH", "env": []string{"PATH=/nowhere"}}, "/nowhere\n"),
		run("a program of its directory", map[string]any{"argv": []string{"./greet"}, "cwd": "sub"}, "WS/sub\n"),
		run("interleaved", map[string]any{"command": "echo 1; echo 2 >&2; echo 3", "interleave": true}, "1\n2\n3\n"),
		run("a long time-out", map[string]any{"command": "echo in time", "timeout": 500}, "in time\n"),
		run("a command of 300 KB", map[string]any{"command": "echo " + strings.Repeat("x", 300<<10) + " | wc -c"}, "307201\n"),
		fails(command("exit", "echo out; exit 3", "out\n"), "3"),
		fails(command("an unknown program", "no-such-program", "bash: line 1: no-such-program: command not found\n"), "127"),
		fails(shellCase{name: "a mistake in the language", tool: "shell_exec", args: map[string]any{"command": "echo hi\n)"}, text: "-", has: []string{"hi\n", "syntax error"}}, "2"),
		fails(command("the language's own exit", "set -e; false; echo no", ""), "1"),
		facts(fails(command("a signal", "echo a; cd /usr; kill -TERM $$", "a\n"), "-1"), func(r execResult) bool { return r.ExitCode == -1 && r.Signal == "SIGTERM" && r.Cwd == "/usr" }),
		facts(command("what is known of it", "echo out; echo err >&2; cd /usr", "stdout:\nout\n\n\nstderr:\nerr\n"), func(r execResult) bool {
			return r.Stdout == "out\n" && r.Stderr == "err\n" && r.StdoutBytes == 4 && r.StderrBytes == 4 && r.Cwd == "/usr" && !r.Truncated && r.Killed == 0
		}),
		facts(fails(command("the directory after exit", "cd /usr; exit 4", ""), "4"), func(r execResult) bool { return r.Cwd == "/usr" && r.ExitCode == 4 }),
		facts(command("the directory is gone", `mkdir x && cd x && rmdir "$PWD"`, ""), func(r execResult) bool { return r.Cwd == "" }),
		facts(command("another program takes its place", "cd /usr; exec true", ""), func(r execResult) bool { return r.Cwd == "/usr" && r.ExitCode == 0 }),
		facts(command("the directory is the shell's, not its last program's", "env -C /usr true", ""), func(r execResult) bool { return filepath.Base(r.Cwd) != "usr" }),
		facts(shellCase{
			name: "something left in the background", tool: "shell_exec", args: map[string]any{"command": "sleep 1000 & echo started"}, text: "-",
			has: []string{"started\n[killed 1 process that the command left running"},
		}, func(r execResult) bool { return r.Killed == 1 }),
		facts(shellCase{name: "binary output", tool: "shell_exec", args: map[string]any{"command": `printf 'a\xff\x00b\n'`}, text: "a\uFFFD\x00b\n"}, func(r execResult) bool { return r.StdoutBytes == 5 }),
		facts(shellCase{
			name: "long output", tool: "shell_exec", args: map[string]any{"command": "seq 1000000"}, text: "-",
			has: []string{"1\n2\n3\n", "bytes left out ...]\n", "\n999999\n1000000\n[output truncated — original size: 6,888,896 bytes]"},
		}, func(r execResult) bool {
			return r.Truncated && r.StdoutBytes == 6888896 && strings.HasPrefix(r.Stdout, "1\n2\n") && strings.HasSuffix(r.Stdout, "\n1000000\n")
		}),
		facts(shellCase{name: "an endless line", tool: "shell_exec", args: map[string]any{"command": "head -c 3000000 /dev/zero | tr '\\0' é"}, text: "-"}, func(r execResult) bool { return r.Truncated }),
		facts(fails(shellCase{
			name: "both outputs are long", tool: "shell_exec", args: map[string]any{"command": "seq 100000; seq 200000 300000 >&2; exit 1"}, text: "-",
			has: []string{"stdout:\n1\n", "\n100000\n\n\nstderr:\n200000\n", "\n300000\n"},
		}, "1"), func(r execResult) bool { return r.Truncated }),
	}
}

func TestExec(t *testing.T) {
	p, workspace := startShell(t, nil)
	if err := os.Mkdir(filepath.Join(workspace, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := testprogram.Write(filepath.Join(workspace, "sub", "greet"), strings.NewReader("#!/bin/sh\npwd\n")); err != nil {
		t.Fatal(err)
	}
	for _, c := range execCases() {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, func(name string, args any) tool.Result { return p.Call(t.Context(), name, args) }, workspace)
		})
	}
}

// Whatever descriptor a command opens, and however it ends, what it writes there
// is all that comes there.
func TestDescriptorsAreTheCommands(t *testing.T) {
	p, _ := startShell(t, nil)
	for _, fd := range []string{"3", "4", "9", "10", "11", "63", "200"} {
		for _, end := range []string{"true", "exit 4", "f() { exit 4; }; f", "kill -TERM $$", "cd /usr"} {
			p.Call(t.Context(), "shell_exec", map[string]any{"command": "exec " + fd + ">out; echo data >&" + fd + "; " + end})
			if got := p.Call(t.Context(), "shell_exec", map[string]any{"command": "cat out; rm out"}); got.Text() != "data\n" {
				t.Errorf("descriptor %s and %q: the file has %q, %v", fd, end, got.Text(), got.Error)
			}
		}
	}
}

// A result is never longer than the caller wants it, in either form.
func TestResultsFit(t *testing.T) {
	p, _ := startShell(t, nil)
	for _, most := range []tool.ByteSize{512, tool.KiB, 4 * tool.KiB, 16 * tool.KiB, 64 * tool.KiB} {
		for _, command := range []string{"seq 1000000", `head -c 1000000 /dev/urandom`, `yes '"\' | head -c 200000; seq 50000 >&2`, "head -c 100000 /dev/zero; echo x >&2"} {
			got := p.Run(t.Context(), tool.Call{
				Tool: "shell_exec", Arguments: asJSON(t, map[string]any{"command": command}), Context: tool.Context{MaxOutput: most},
			}, tool.Sink{})
			if got.Error != nil || len(got.Text()) > int(most) || len(got.Structured) > int(most) {
				t.Errorf("%s in %v: %d bytes of text, %d structured, %v", command, most, len(got.Text()), len(got.Structured), got.Error)
			}
			if most > tool.KiB && !strings.HasSuffix(got.Text(), " bytes]") {
				t.Errorf("%s in %v ends %q", command, most, got.Text()[max(0, len(got.Text())-100):])
			}
		}
	}
}

// All of the output is streamed as it comes, apart by stream, and progress tells
// the last line.
func TestStreaming(t *testing.T) {
	p, _ := startShell(t, nil)
	var out, err strings.Builder
	var told []string
	got := p.Run(t.Context(), tool.Call{Tool: "shell_exec", Arguments: asJSON(t, map[string]any{"command": "echo first; seq 500000; seq 7 >&2"})}, tool.Sink{
		Chunk: func(c tool.Chunk) {
			if c.Stream == tool.Stderr {
				err.Write(c.Data)
				return
			}
			out.Write(c.Data)
		},
		Progress: func(p tool.Progress) { told = append(told, p.Message) },
	})
	if got.Error != nil || out.Len() != 6+3388895 || !strings.HasPrefix(out.String(), "first\n1\n2\n") || err.String() != "1\n2\n3\n4\n5\n6\n7\n" {
		t.Errorf("streamed %d and %d bytes, %v", out.Len(), err.Len(), got.Error)
	}
	if len(told) == 0 || strings.Contains(told[0], "\n") {
		t.Errorf("progress is %q", told)
	}
}

// A report of progress comes once a second at most, and shows part of a line.
func TestProgressIsBounded(t *testing.T) {
	p, _ := startShell(t, nil)
	var told []string
	begun := time.Now()
	got := p.Run(t.Context(), tool.Call{Tool: "shell_exec", Arguments: asJSON(t, map[string]any{
		"command": "x=$(printf 'x%.0s' {1..500}); for i in {1..100}; do echo $x; env true; done",
	})}, tool.Sink{Progress: func(p tool.Progress) { told = append(told, p.Message) }})
	if most := 1 + int(time.Since(begun)/progressEvery); got.Error != nil || len(told) == 0 || len(told) > most {
		t.Errorf("%d reports of progress, want 1 to %d, %v", len(told), most, got.Error)
	}
	if len(told) > 0 && (len(told[0]) > maxLine+len("...") || !strings.HasPrefix(told[0], "xxx")) {
		t.Errorf("a report shows %d bytes", len(told[0]))
	}
}

// A command whose time is over may say its last word.
func TestGrace(t *testing.T) {
	for _, backend := range []string{backendHost, backendSession} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			p, _ := startShell(t, map[string]any{"backend": backend, "grace": "5s"})
			got := p.Call(t.Context(), "shell_exec", map[string]any{
				"command": "bash -c 'trap \"echo bye; exit\" TERM; echo ready; while :; do sleep 0.01; done'", "timeout": 5, // to become ready
			})
			if facts := structured(t, got); got.Error == nil || got.Error.Code != tool.Timeout || facts.Stdout != "ready\nbye\n" {
				t.Errorf("it says %q, %v", facts.Stdout, got.Error)
			}
		})
	}
}

// If the host gives a call less time than a command has, it is still the plugin
// that tells how the command has ended, with its output.
func TestTimeOfTheCall(t *testing.T) {
	for _, backend := range []string{backendHost, backendSession} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			p, _ := startShell(t, map[string]any{"backend": backend, "grace": "0s"})
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			defer cancel()
			got := p.Call(ctx, "shell_exec", map[string]any{"command": "echo partial; sleep 1000", "timeout": 600})
			if got.Error == nil || got.Error.Code != tool.Timeout || got.Text() != "partial\n" || !structured(t, got).TimedOut {
				t.Fatalf("%q, %v", got.Text(), got.Error)
			}
			if want := "the call had no more time; use shell_background"; !strings.HasPrefix(got.Error.Hint, want) {
				t.Errorf("the hint is %q, want %q", got.Error.Hint, want)
			}
			got = p.Call(t.Context(), "shell_exec", map[string]any{"command": "sleep 1000", "timeout": 1})
			if want := "set a longer timeout, or use shell_background"; got.Error == nil || !strings.HasPrefix(got.Error.Hint, want) {
				t.Errorf("the hint of a time-out that the command asked for is %v, want %q", got.Error, want)
			}
		})
	}
}

// A command that has waited for another one of its session has what is left of
// its call's time, and so does its result.
func TestTimeAfterTheWait(t *testing.T) {
	t.Parallel()
	p, _ := startShell(t, map[string]any{"backend": backendSession, "grace": "0s"})
	m := newMark()
	first := make(chan tool.Result, 1)
	go func() { // ends with the time of the command
		first <- p.Call(t.Context(), "shell_exec", map[string]any{"command": m.sleeper("x"), "timeout": 3})
	}()
	m.await(t, "x", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	got := p.Call(ctx, "shell_exec", map[string]any{"command": "echo partial; sleep 1000", "timeout": 600})
	if got.Error == nil || got.Error.Code != tool.Timeout || got.Text() != "partial\n" {
		t.Errorf("%q, %v", got.Text(), got.Error)
	}
	if got := <-first; got.Error == nil || got.Error.Code != tool.Timeout {
		t.Errorf("the first command: %v", got.Error)
	}
}

// What a command does to its home and its temporary directory does not keep the
// next one from running.
func TestPlacesComeBack(t *testing.T) {
	p, _ := startShell(t, nil)
	for _, spoil := range []string{"rm -rf $D", "rm -rf $D; touch $D", "rm -rf $D; ln -s /none $D", "chmod 0 $D"} {
		for _, name := range []string{"HOME", "TMPDIR"} {
			p.Call(t.Context(), "shell_exec", map[string]any{"command": "D=$" + name + "; " + spoil})
			if got := p.Call(t.Context(), "shell_exec", map[string]any{"command": "[ -d $" + name + " ] && echo well"}); got.Text() != "well\n" {
				t.Errorf("after %s of %s: %q, %v", spoil, name, got.Text(), got.Error)
			}
		}
	}
}

// Calls that both have found something else in a directory's place both get the
// directory, and the second leaves what the command of the first has put there.
func TestPlacesAreRestoredOnce(t *testing.T) {
	s := &shell{}
	dir := filepath.Join(t.TempDir(), "home")
	for _, file := range []string{dir, filepath.Join(dir, "file")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.restore(dir); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("the directory holds %v, %v", files, err)
	}
	if err := s.restore(filepath.Join(dir, "file", "none")); err == nil { // the control run
		t.Error("a directory below a file is made")
	}
}

// Processes that could not be killed are told.
func TestSurvivorsAreTold(t *testing.T) {
	got := outcome{Result: proc.Result{Survivors: 2}}.result(1024)
	if want := "[2 processes could not be killed and may still be running]\n"; got.Content == nil || string(got.Content[0].Data) != want || structured(t, got).Survivors != 2 {
		t.Errorf("the result is %+v", got)
	}
}

// The environment is made from nothing.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	t.Setenv("LC_TIME", "C")
	t.Setenv("TZ", "UTC")
	t.Setenv("PASSED", "yes")
	t.Setenv("LD_LIBRARY_PATH", "/tmp")
	names := func(r tool.Result) []string {
		var names []string
		for line := range strings.Lines(r.Text()) {
			name, _, _ := strings.Cut(line, "=")
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	p, _ := startShell(t, nil)
	want := []string{"HOME", "LANG", "LC_TIME", "PATH", "PWD", "SHLVL", "TERM", "TMPDIR", "TZ", "_"}
	for _, entry := range gitenv.Environment() {
		name, _, _ := strings.Cut(entry, "=")
		want = append(want, name)
	}
	slices.Sort(want)
	if got := names(p.Call(t.Context(), "shell_exec", map[string]any{"command": "env"})); !slices.Equal(got, want) {
		t.Errorf("a command has %q, want %q", got, want)
	}
	p, _ = startShell(t, map[string]any{"pass": []string{"PASSED"}, "env": map[string]string{"ADDED": "1"}, "path": "/usr/bin:/bin"})
	got := p.Call(t.Context(), "shell_exec", map[string]any{"command": "echo $PASSED $ADDED $PATH $SECRET; [ -d $HOME ] && [ -d $TMPDIR ] && touch $HOME/a $TMPDIR/b && echo ok"})
	if got.Text() != "yes 1 /usr/bin:/bin\nok\n" {
		t.Errorf("a command says %q", got.Text())
	}
}

func execMistakes() []shellCase {
	call := func(name string, code tool.Code, fail string, args map[string]any) shellCase {
		return shellCase{name: name, tool: "shell_exec", args: args, code: code, fail: fail}
	}
	return []shellCase{
		call("nothing", tool.InvalidArgument, "missing required field 'command'", map[string]any{}),
		call("only spaces", tool.InvalidArgument, "missing required field 'command'", map[string]any{"command": " \n"}),
		call("both", tool.InvalidArgument, "both command and argv", map[string]any{"command": "ls", "argv": []string{"ls"}}),
		call("a NUL", tool.InvalidArgument, "the command contains a NUL byte", map[string]any{"command": "echo a\x00b"}),
		call("a NUL in an argument", tool.InvalidArgument, "the command contains a NUL byte", map[string]any{"argv": []string{"echo", "\x00"}}),
		call("a NUL in the directory", tool.InvalidArgument, "cwd contains a NUL byte", map[string]any{"command": "ls", "cwd": "a\x00b"}),
		call("a NUL in a variable", tool.InvalidArgument, "the variable A contains a NUL byte", map[string]any{"command": "ls", "env": []string{"A=\x00"}}),
		call("no name", tool.InvalidArgument, `env has "=a"`, map[string]any{"command": "ls", "env": []string{"=a"}}),
		call("a name of bash's functions", tool.InvalidArgument, `env has "BASH_FUNC_ls%%`, map[string]any{"command": "ls", "env": []string{"BASH_FUNC_ls%%=() { id; }"}}),
		call("a variable that sh reads", tool.InvalidArgument, "env sets ENV", map[string]any{"command": "ls", "env": []string{"ENV=/x"}}),
		call("a variable that runs something", tool.InvalidArgument, "env sets PS4", map[string]any{"command": "ls", "env": []string{"PS4=$(id)"}}),
		call("a variable of the host's", tool.InvalidArgument, "env sets PLUGIN_X", map[string]any{"command": "ls", "env": []string{"PLUGIN_X=1"}}),
		call("a variable of git's", tool.InvalidArgument, "env sets GIT_DIR", map[string]any{"command": "ls", "env": []string{"GIT_DIR=/x"}}),
		call("a variable without value", tool.InvalidArgument, `env has "A"`, map[string]any{"command": "ls", "env": []string{"A"}}),
		call("a variable that loads something", tool.InvalidArgument, "env sets LD_PRELOAD", map[string]any{"command": "ls", "env": []string{"LD_PRELOAD=/x.so"}}),
		call("a variable that bash reads", tool.InvalidArgument, "env sets BASH_ENV", map[string]any{"command": "ls", "env": []string{"BASH_ENV=/x"}}),
		call("a time-out that is too long", tool.InvalidArgument, "timeout is 601, expected 1 to 600", map[string]any{"command": "ls", "timeout": 601}),
		call("a negative time-out", tool.InvalidArgument, "timeout is -1", map[string]any{"command": "ls", "timeout": -1}),
		call("a missing directory", tool.Failed, "Execution failed: working directory not found: WS/none", map[string]any{"command": "ls", "cwd": "none"}),
		call("a file as directory", tool.Failed, "Execution failed: the working directory is not a directory: WS/file", map[string]any{"command": "ls", "cwd": "file"}),
		call("a missing program", tool.Failed, "Execution failed: program not found: none", map[string]any{"argv": []string{"none"}}),
		call("no program", tool.Failed, "Execution failed: no program is given", map[string]any{"argv": []string{""}}),
		call("a command of 3 MB", tool.Failed, "Execution failed: the arguments of /", map[string]any{"command": "echo " + strings.Repeat("x", 3<<20)}),
	}
}

func TestExecMistakes(t *testing.T) {
	p, workspace := startShell(t, nil)
	if err := os.WriteFile(filepath.Join(workspace, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range execMistakes() {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, func(name string, args any) tool.Result { return p.Call(t.Context(), name, args) }, workspace)
		})
	}
}
