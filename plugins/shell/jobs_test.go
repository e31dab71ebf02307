package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// jobCases are jobs, each with what it writes in all.
func jobCases() []shellCase {
	run := func(name string, args map[string]any, text string) shellCase {
		return shellCase{name: name, tool: "shell_background", args: args, text: text}
	}
	return []shellCase{
		run("a command", map[string]any{"command": "echo out; echo err >&2; exit 3"}, "out\nerr\n[ended with exit code 3; next cursor 8]\n"),
		run("a program", map[string]any{"argv": []string{"printf", "%s", "$HOME"}}, "$HOME\n[ended with exit code 0; next cursor 5]\n"),
		run("a directory", map[string]any{"command": "pwd", "cwd": "/usr"}, "/usr\n[ended with exit code 0; next cursor 5]\n"),
		run("variables", map[string]any{"command": "echo $A", "env": []string{"A=b"}}, "b\n[ended with exit code 0; next cursor 2]\n"),
		run("input", map[string]any{"command": "read -r line; echo $line", "stdin": "typed\n"}, "typed\n[ended with exit code 0; next cursor 6]\n"),
		run("a signal", map[string]any{"command": "kill -TERM $$"}, "[ended by SIGTERM; next cursor 0]\n"),
		run("a terminal", map[string]any{"command": "stty size; tty >/dev/null && echo $TERM", "pty": true, "rows": 30, "cols": 100}, "30 100\r\nxterm-256color\r\n[ended with exit code 0; next cursor 24]\n"),
		run("no terminal", map[string]any{"command": "tty; echo $TERM"}, "not a tty\ndumb\n[ended with exit code 0; next cursor 15]\n"),
	}
}

// startJobOf starts a job and returns its id.
func startJobOf(t *testing.T, p *sdktest.Plugin, args map[string]any) string {
	t.Helper()
	got := p.Call(t.Context(), "shell_background", args)
	id, _ := got.Metadata["job"].(string)
	if got.Error != nil || !strings.HasPrefix(id, "job_") || !strings.Contains(got.Text(), id) {
		t.Fatalf("shell_background %v = %q, %v", args, got.Text(), got.Error)
	}
	return id
}

// outputOf reads on until the job ends, or its output has what is wanted.
func outputOf(t *testing.T, p *sdktest.Plugin, id, want string) string {
	t.Helper()
	var all strings.Builder
	for cursor := any(0); ; {
		got := p.Call(t.Context(), "process_output", map[string]any{"job": id, "cursor": cursor, "wait": 300})
		if got.Error != nil {
			t.Fatal(got.Error)
		}
		text := got.Text()
		if cursor = got.Metadata["next_cursor"]; got.Metadata["running"] == false && got.Metadata["more"] == false {
			return all.String() + text
		}
		all.WriteString(text[:strings.LastIndex(strings.TrimSuffix(text, "\n"), "[")])
		if want != "" && strings.Contains(all.String(), want) {
			return all.String()
		}
	}
}

func TestJobs(t *testing.T) {
	p, _ := startShell(t, nil)
	for _, c := range jobCases() {
		t.Run(c.name, func(t *testing.T) {
			if got := outputOf(t, p, startJobOf(t, p, c.args), ""); got != c.text {
				t.Errorf("it writes %q, want %q", got, c.text)
			}
		})
	}
}

func TestJobInput(t *testing.T) {
	p, _ := startShell(t, nil)
	send := func(id string, args map[string]any) {
		t.Helper()
		args["job"] = id
		if got := p.Call(t.Context(), "process_input", args); got.Error != nil {
			t.Errorf("process_input %v: %v", args, got.Error)
		}
	}
	id := startJobOf(t, p, map[string]any{"command": "cat; echo end"})
	send(id, map[string]any{"data": "one\n"})
	outputOf(t, p, id, "one\n")
	send(id, map[string]any{"data": "two\n", "eof": true})
	if got := outputOf(t, p, id, ""); got != "one\ntwo\nend\n[ended with exit code 0; next cursor 12]\n" {
		t.Errorf("the job writes %q", got)
	}

	// A signal that comes just before bash reads is noticed after the read, so that ends by itself.
	id = startJobOf(t, p, map[string]any{"command": "trap 'echo interrupted; exit 2' INT; echo ready; while :; do read -r -t 1 x && echo \"got $x\"; done", "pty": true})
	outputOf(t, p, id, "ready")
	send(id, map[string]any{"data": "abc", "keys": []string{"enter"}})
	outputOf(t, p, id, "got abc")
	send(id, map[string]any{"keys": []string{"ctrl_c"}})
	if got := outputOf(t, p, id, ""); !strings.Contains(got, "interrupted") || !strings.Contains(got, "[ended with exit code 2;") {
		t.Errorf("the job writes %q", got)
	}
}

// Every key of the schema has what it sends.
func TestKeys(t *testing.T) {
	keys := []string{
		"enter", "tab", "escape", "backspace", "up", "down", "left", "right", "home", "end", "page_up", "page_down", "delete",
		"ctrl_a", "ctrl_c", "ctrl_d", "ctrl_e", "ctrl_l", "ctrl_r", "ctrl_u", "ctrl_z",
	}
	if len(keys) != len(keySequences()) {
		t.Errorf("%d keys are pressed of %d", len(keys), len(keySequences()))
	}
	var all strings.Builder
	for _, key := range keys {
		all.WriteString(keySequences()[key])
	}
	p, _ := startShell(t, nil)
	id := startJobOf(t, p, map[string]any{"command": fmt.Sprintf("stty raw -echo; echo ready; head -c %d | base64 -w 0", len(all.String())), "pty": true})
	outputOf(t, p, id, "ready")
	if got := p.Call(t.Context(), "process_input", map[string]any{"job": id, "keys": keys}); got.Error != nil {
		t.Fatal(got.Error)
	}
	if got := outputOf(t, p, id, ""); !strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(all.String()))) {
		t.Errorf("the job reads %q, want %q", got, all.String())
	}
}

func TestJobSignals(t *testing.T) {
	p, _ := startShell(t, nil)
	id := startJobOf(t, p, map[string]any{"command": "trap 'echo usr1' USR1; trap 'echo term' TERM; echo ready; while :; do sleep 0.01; done"})
	outputOf(t, p, id, "ready")
	for _, signal := range []string{"USR1", "TERM"} {
		if got := p.Call(t.Context(), "process_kill", map[string]any{"job": id, "signal": signal}); got.Text() != "Sent SIG"+signal+" to "+id {
			t.Errorf("process_kill: %q, %v", got.Text(), got.Error)
		}
		outputOf(t, p, id, strings.ToLower(signal))
	}
	for _, want := range []string{id + " was killed with everything it had started", id + " had already ended: killed"} {
		if got := p.Call(t.Context(), "process_kill", map[string]any{"job": id}); got.Text() != want {
			t.Errorf("process_kill: %q, %v, want %q", got.Text(), got.Error, want)
		}
	}
	if got := p.Call(t.Context(), "process_list", map[string]any{}); !strings.HasPrefix(got.Text(), id+"  killed  since ") {
		t.Errorf("process_list: %q", got.Text())
	}
}

// The log of a job keeps its end, and says what is lost; it can be read from its
// end, and in parts that fit.
func TestJobLog(t *testing.T) {
	p, _ := startShell(t, map[string]any{"max_output": "4KiB"})
	id := startJobOf(t, p, map[string]any{"command": "seq 100000"})
	outputOf(t, p, id, "")
	read := func(args map[string]any, most tool.ByteSize) tool.Result {
		args["job"] = id
		return p.Run(t.Context(), tool.Call{Tool: "process_output", Arguments: asJSON(t, args), Context: tool.Context{MaxOutput: most}}, tool.Sink{})
	}
	got := read(map[string]any{}, 64*tool.KiB)
	if want := "[584,799 earlier bytes are no longer available]\n"; !strings.HasPrefix(got.Text(), want) || !strings.HasSuffix(got.Text(), "\n100000\n[ended with exit code 0; next cursor 588895]\n") {
		t.Errorf("the log is %q...%q", got.Text()[:min(60, len(got.Text()))], got.Text()[max(0, len(got.Text())-60):])
	}
	if got := read(map[string]any{"cursor": -7}, 64*tool.KiB); got.Text() != "100000\n[ended with exit code 0; next cursor 588895]\n" {
		t.Errorf("its end is %q", got.Text())
	}
	got = read(map[string]any{"cursor": 585000}, tool.KiB)
	if len(got.Text()) > int(tool.KiB) || got.Metadata["more"] != true || got.Metadata["next_cursor"] != 585512.0 {
		t.Errorf("a part of it: %d bytes, %v", len(got.Text()), got.Metadata)
	}
	if got := read(map[string]any{"cursor": 588895}, 64*tool.KiB); got.Text() != "[ended with exit code 0; next cursor 588895]\n" {
		t.Errorf("after its end: %q", got.Text())
	}
}

// TestJobTimes checks that the list of jobs tells how long each ran, and what it used.
func TestJobTimes(t *testing.T) {
	p, _ := startShell(t, nil)
	running := startJobOf(t, p, map[string]any{"command": "read -r _"})
	busy := startJobOf(t, p, map[string]any{"command": "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"})
	outputOf(t, p, busy, "")
	got := p.Call(t.Context(), "process_list", map[string]any{})
	var told struct {
		Jobs []struct {
			Job   string `json:"job"`
			RanMS int64  `json:"ran_ms"`
			CPUMS int64  `json:"cpu_ms"`
		} `json:"jobs"`
	}
	if err := json.Unmarshal(asJSON(t, got.Metadata), &told); err != nil || len(told.Jobs) != 2 {
		t.Fatalf("process_list = %v, %v", got.Metadata, err)
	}
	for _, j := range told.Jobs {
		line := fmt.Sprintf("  ran %s  ", seconds(j.RanMS))
		if j.Job == busy {
			line = fmt.Sprintf("  ran %s, CPU %s  ", seconds(j.RanMS), seconds(j.CPUMS))
		}
		if !strings.Contains(got.Text(), line) || (j.CPUMS > 0) != (j.Job == busy) || j.Job != running && j.Job != busy {
			t.Errorf("%+v, and the list %q, want %q in it", j, got.Text(), line)
		}
	}
	if text := seconds(12_345); text != "12.3 s" {
		t.Errorf("12,345 ms are %q", text)
	}
}

// TestJobOutputUntil waits for lines of jobs.
func TestJobOutputUntil(t *testing.T) {
	p, _ := startShell(t, nil)
	read := func(id string, most tool.ByteSize, args map[string]any) tool.Result {
		t.Helper()
		args["job"] = id
		return p.Run(t.Context(), tool.Call{Tool: "process_output", Arguments: asJSON(t, args), Context: tool.Context{MaxOutput: most}}, tool.Sink{})
	}
	want := func(got tool.Result, text string, found bool) {
		t.Helper()
		if got.Text() != text || got.Metadata["found"] != found {
			t.Errorf("%q, found %v, %v; want %q, %t", got.Text(), got.Metadata["found"], got.Error, text, found)
		}
	}
	server := startJobOf(t, p, map[string]any{"command": "echo starting; read -r _; printf 'listening on 80'; read -r _; echo; echo bye"})
	waiting := make(chan tool.Result, 1)
	go func() { waiting <- read(server, 64*tool.KiB, map[string]any{"until": "^listening", "wait": 300}) }() // ends with the line
	want(read(server, 64*tool.KiB, map[string]any{"until": "^starting$", "wait": 300}), "starting\n[until matches, running; next cursor 9]\n", true)
	want(read(server, 64*tool.KiB, map[string]any{"until": "nothing", "wait": 1}), "starting\n[until matches no line yet, running; next cursor 9]\n", false)
	p.Call(t.Context(), "process_input", map[string]any{"job": server, "data": "\n"})
	want(<-waiting, "starting\nlistening on 80\n[until matches, running; next cursor 24]\n", true)
	p.Call(t.Context(), "process_input", map[string]any{"job": server, "data": "\n"})
	want(read(server, 64*tool.KiB, map[string]any{"until": "nothing", "cursor": 24, "wait": 300}), "\nbye\n[until matches no line, ended with exit code 0; next cursor 29]\n", false)

	long := startJobOf(t, p, map[string]any{"command": "seq 50000"})
	got := read(long, tool.KiB, map[string]any{"until": "^30000$", "wait": 300})
	if text := got.Text(); !strings.HasPrefix(text, "[168,") || !strings.Contains(text, " earlier bytes are left out: cursor 0]\n") || !strings.Contains(text, "\n29999\n30000\n[until matches, ") {
		t.Errorf("a line far away: %q", text)
	}
}

// What a job writes that is no text fits into a result all the same, and nothing
// of it is lost on the way.
func TestJobOutputFits(t *testing.T) {
	p, _ := startShell(t, nil)
	for want, command := range map[string]string{
		strings.Repeat("a\uFFFDé", 2000):     `for i in {1..2000}; do printf 'a\xff\xfeé'; done`,
		strings.Repeat("äöü\U0001F600", 999): `for i in {1..999}; do printf 'äöü\U0001F600'; done`,
	} {
		got := inParts(t, p, startJobOf(t, p, map[string]any{"command": command}))
		// A run of bytes that are no text may be cut.
		if strings.ReplaceAll(got, "\uFFFD\uFFFD", "\uFFFD") != want {
			t.Errorf("the parts of what %s writes are %d bytes, want %d", command, len(got), len(want))
		}
	}
}

// The part of a character that a job has written by now comes with its rest.
func TestJobOutputIsWhole(t *testing.T) {
	p, _ := startShell(t, nil)
	id := startJobOf(t, p, map[string]any{"command": `printf 'a\xc3'; read -r; printf '\xa9'`})
	if got := p.Call(t.Context(), "process_output", map[string]any{"job": id, "wait": 300}); got.Text() != "a\n[running; next cursor 1]\n" && got.Text() != "a\n[1 more bytes: cursor 1]\n" {
		t.Errorf("while half of it is there: %q", got.Text())
	}
	if got := p.Call(t.Context(), "process_input", map[string]any{"job": id, "data": "\n"}); got.Error != nil {
		t.Fatal(got.Error)
	}
	outputOf(t, p, id, "")
	if got := p.Call(t.Context(), "process_output", map[string]any{"job": id, "cursor": 1}); got.Text() != "é\n[ended with exit code 0; next cursor 3]\n" {
		t.Errorf("the rest is %q", got.Text())
	}
}

// inParts reads what a job has written in all in parts of a KiB.
func inParts(t *testing.T, p *sdktest.Plugin, id string) string {
	t.Helper()
	outputOf(t, p, id, "")
	var all strings.Builder
	for cursor, more := any(0), true; more; {
		got := p.Run(t.Context(), tool.Call{
			Tool: "process_output", Arguments: asJSON(t, map[string]any{"job": id, "cursor": cursor}), Context: tool.Context{MaxOutput: tool.KiB},
		}, tool.Sink{})
		if len(got.Text()) > int(tool.KiB) {
			t.Fatalf("%d bytes of text", len(got.Text()))
		}
		cursor, more = got.Metadata["next_cursor"], got.Metadata["more"] == true
		all.WriteString(got.Text()[:strings.LastIndex(strings.TrimSuffix(got.Text(), "\n"), "\n[")])
	}
	return all.String()
}

// A process of another job may hold a job's terminal: the job ends, and can be
// killed, all the same.
func TestTerminalIsHeld(t *testing.T) {
	p, _ := startShell(t, nil)
	id := startJobOf(t, p, map[string]any{"command": "tty; exec sleep 1000", "pty": true})
	name := strings.TrimSpace(outputOf(t, p, id, "/dev/pts/"))
	other := startJobOf(t, p, map[string]any{"command": "exec 9<>" + name + "; echo held; read -r; echo late >&9; exec sleep 1000"})
	outputOf(t, p, other, "held")
	if got := p.Call(t.Context(), "process_kill", map[string]any{"job": id}); got.Error != nil {
		t.Errorf("process_kill: %v", got.Error)
	}
	if got := p.Call(t.Context(), "process_input", map[string]any{"job": other, "data": "\n"}); got.Error != nil {
		t.Error(got.Error)
	}
	if got := outputOf(t, p, id, ""); !strings.HasPrefix(got, name+"\r\n[killed; ") {
		t.Errorf("the job has written %q", got)
	}
}

// jobMistakes are calls about a job that has ended and one that runs without a
// terminal.
func jobMistakes(ended, running string) []shellCase {
	call := func(name, toolName string, code tool.Code, fail string, args map[string]any) shellCase {
		return shellCase{name: name, tool: toolName, args: args, code: code, fail: fail}
	}
	return []shellCase{
		call("no such job", "process_output", tool.NotFound, "this session has no job job_x", map[string]any{"job": "job_x"}),
		call("too long a wait", "process_output", tool.InvalidArgument, "wait is 301, expected 0 to 300", map[string]any{"job": ended, "wait": 301}),
		call("a negative wait", "process_output", tool.InvalidArgument, "wait is -1", map[string]any{"job": ended, "wait": -1, "cursor": 5}),
		call("until that is no expression", "process_output", tool.InvalidArgument, "until is not a regular expression of RE2: error parsing", map[string]any{"job": running, "until": "("}),
		call("input for a job that is not there", "process_input", tool.NotFound, "this session has no job job_x", map[string]any{"job": "job_x", "data": "x"}),
		call("nothing to write", "process_input", tool.InvalidArgument, "data, keys and eof are all missing", map[string]any{"job": running}),
		call("input for a job that has ended", "process_input", tool.Failed, "the job no longer accepts input: ended with exit code 0", map[string]any{"job": ended, "data": "x"}),
		call("keys without a terminal", "process_input", tool.InvalidArgument, "the job has no terminal", map[string]any{"job": running, "keys": []string{"enter"}}),
		call("more input than it reads", "process_input", tool.Timeout, "the job has not read all of its input yet", map[string]any{"job": running, "data": strings.Repeat("x", 300<<10)}),
		call("and more still", "process_input", tool.Conflict, "the job has not read its earlier input yet", map[string]any{"job": running, "data": "x", "eof": true}),
		call("and its end before that", "process_input", tool.Conflict, "the job has not read its earlier input yet", map[string]any{"job": running, "eof": true}),
		call("a kill of a job that is not there", "process_kill", tool.NotFound, "this session has no job job_x", map[string]any{"job": "job_x", "signal": "TERM"}),
		call("a terminal of no lines", "shell_background", tool.InvalidArgument, "rows is 0, expected 1 to 1000", map[string]any{"command": "ls", "pty": true, "rows": 0, "cols": 80}),
		call("a terminal and input", "shell_background", tool.InvalidArgument, "stdin cannot be given to a job with a terminal", map[string]any{"command": "ls", "pty": true, "stdin": "x"}),
		call("a missing program", "shell_background", tool.Failed, "Execution failed: program not found: none", map[string]any{"argv": []string{"none"}}),
		call("a missing directory", "shell_background", tool.Failed, "Execution failed: working directory not found", map[string]any{"command": "ls", "cwd": "none"}),
		call("nothing to run", "shell_background", tool.InvalidArgument, "missing required field 'command'", map[string]any{}),
	}
}

func TestJobMistakes(t *testing.T) {
	t.Parallel() // one call waits for 10 s
	p, workspace := startShell(t, nil)
	ended := startJobOf(t, p, map[string]any{"command": "true"})
	outputOf(t, p, ended, "")
	running := startJobOf(t, p, map[string]any{"command": "sleep 1000"})
	for _, c := range jobMistakes(ended, running) {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, func(name string, args any) tool.Result { return p.Call(t.Context(), name, args) }, workspace)
		})
	}
	screen := startJobOf(t, p, map[string]any{"command": "cat", "pty": true})
	if got := p.Call(t.Context(), "process_input", map[string]any{"job": screen, "eof": true}); got.Error == nil || got.Error.Code != tool.InvalidArgument {
		t.Errorf("eof for a job with a terminal: %v", got.Error)
	}
}

// However many jobs are asked for at a time, a session and a user have no more
// than they may; another user has its own.
func TestThousandsOfJobs(t *testing.T) {
	tries := soak.Rounds(2_000, 10_000)
	p, _ := startShell(t, map[string]any{"max_jobs": 5, "max_jobs_per_user": 8})
	m := newMark()
	var mu sync.Mutex
	started, refused := map[string]int{}, 0
	var all sync.WaitGroup
	calls := make(chan int)
	for range 50 {
		all.Go(func() {
			for i := range calls {
				session := fmt.Sprint("s", i%2)
				got := as(t, p, "ann", session, "shell_background", map[string]any{"command": m.sleeper("x")})
				mu.Lock()
				if got.Error == nil {
					started[session]++
				} else if got.Error.Code == tool.ResourceExhausted {
					refused++
				} else {
					t.Error(got.Error)
				}
				mu.Unlock()
			}
		})
	}
	for i := range tries {
		calls <- i
	}
	close(calls)
	all.Wait()
	if n := started["s0"] + started["s1"]; n != 8 || started["s0"] > 5 || started["s1"] > 5 || refused != tries-8 {
		t.Errorf("started %v, refused %d", started, refused)
	}
	m.await(t, "x", 8)
	if got := as(t, p, "bob", "s0", "shell_background", map[string]any{"command": m.sleeper("x")}); got.Error != nil {
		t.Errorf("a job of another user: %v", got.Error)
	}
	if got := as(t, p, "bob", "s0", "process_list", map[string]any{}); strings.Count(got.Text(), "\n") != 1 {
		t.Errorf("the jobs of the other user: %q", got.Text())
	}
	p.Close()
	m.await(t, "x", 0)
}
