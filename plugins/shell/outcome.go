package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// outcome is the way a command ended.
type outcome struct {
	proc.Result
	cwd     string        // "" if unknown
	timeout time.Duration // its time-out
	short   bool          // timeout is less than the call asked for, because the call itself had no more time
	// newShell reports that the command was the first of its session's shell.
	// replaced reports that this shell replaced another whose end no result has
	// reported. lost reports that the shell ended with the command.
	newShell, replaced, lost bool
}

// execResult is the structured result of a command.
type execResult struct {
	ExitCode    int    `json:"exit_code"`
	Signal      string `json:"signal,omitempty"`
	TimedOut    bool   `json:"timed_out"`
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	StdoutBytes int64  `json:"stdout_bytes"`
	StderrBytes int64  `json:"stderr_bytes"`
	Truncated   bool   `json:"truncated"`
	Cwd         string `json:"cwd,omitempty"`
	Killed      int    `json:"killed"`
	Survivors   int    `json:"survivors,omitempty"`
	NewShell    bool   `json:"new_shell,omitempty"`
	SessionLost bool   `json:"session_lost,omitempty"`
	DurationMS  int64  `json:"duration_ms"`
}

// result returns the result for the caller. Its text and its structured result each
// have at most budget bytes.
func (o outcome) result(budget int) tool.Result {
	result := tool.Result{Error: o.failure()}
	stdout, stderr := o.fitText(budget)
	if text := o.text(stdout, stderr); text != "" {
		result.Content = []tool.Content{tool.Text(text)}
	}
	result.Structured = o.structured(budget)
	return result
}

// failure returns the error of a failed command, nil if it succeeded.
func (o outcome) failure() *tool.Error {
	var e *tool.Error
	hint := ""
	switch {
	case o.TimedOut:
		e = tool.Errorf(tool.Timeout, "The command had not ended after %v and was killed", o.timeout.Round(time.Second/10))
		hint = "set a longer timeout, or use shell_background"
		if o.short {
			hint = "the call had no more time; use shell_background"
		}
	case o.Signal != 0:
		e, hint = tool.Errorf(tool.Failed, "Exit code: -1"), "it was killed by signal "+signalName(o.Signal)
	case o.ExitCode != 0:
		e = tool.Errorf(tool.Failed, "Exit code: %d", o.ExitCode)
		if o.missedNetwork() && offline() {
			hint = noNetwork
		}
	default:
		return nil
	}
	switch {
	case o.Signal == unix.SIGXCPU:
		hint = "it was killed because it exceeded the limit on processor time"
	case o.Signal == unix.SIGXFSZ:
		hint = "it was killed because it exceeded the limit on file size"
	case o.lost:
		hint = strings.TrimPrefix(hint+"; the shell of the session has ended: its variables, functions and directory are lost", "; ")
	}
	if hint == "" {
		return e
	}
	return e.WithHint("%s", hint)
}

// text joins both outputs and adds notices about them.
func (o outcome) text(stdout, stderr shown) string {
	text := joined(stdout.String(), stderr.String())
	if o.Background {
		text = line(text) + fmt.Sprintf("[killed %s that the command left running; use shell_background for long-running processes]\n",
			plural(o.Strays, "process", "processes"))
	}
	if o.Survivors > 0 {
		text = line(text) + fmt.Sprintf("[%s could not be killed and may still be running]\n", plural(o.Survivors, "process", "processes"))
	}
	if o.replaced {
		text = line(text) + "[this ran in a new shell: the session's previous shell has ended, with its directory, variables, functions and background processes]\n"
	}
	if o.lost && o.failure() == nil {
		text = line(text) + "[the shell of the session has ended; the next command starts a new one]\n"
	}
	if stdout.omitted+stderr.omitted > 0 {
		text = line(text) + fmt.Sprintf("[output truncated — original size: %s bytes]", thousands(o.Stdout.Total+o.Stderr.Total))
	}
	if text == "" && o.failure() == nil {
		return "(no output, exit code 0)" // a failure tells its code itself
	}
	return text
}

// joined joins two outputs. If only one has text, it is returned as it is.
func joined(stdout, stderr string) string {
	switch {
	case stderr == "":
		return stdout
	case stdout == "":
		return stderr
	}
	return fmt.Sprintf("stdout:\n%s\n\nstderr:\n%s", stdout, stderr)
}

// line adds a line break to text unless it is empty or ends with one.
func line(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// around is the part of the budget reserved for notices around the outputs.
const around = 512

// fitText shortens the outputs so that their text has at most budget bytes.
func (o outcome) fitText(budget int) (stdout, stderr shown) {
	out, err := lossy(o.Stdout), lossy(o.Stderr)
	room := max(0, budget-around)
	forOut, forErr := share(len(out.String()), len(err.String()), room)
	return out.fit(forOut), err.fit(forErr)
}

// structured returns the result as at most budget bytes of JSON. Escaping can make
// the outputs several times as long.
func (o outcome) structured(budget int) json.RawMessage {
	facts := execResult{
		ExitCode: o.ExitCode, TimedOut: o.TimedOut, StdoutBytes: o.Stdout.Total, StderrBytes: o.Stderr.Total,
		Cwd: strings.ToValidUTF8(o.cwd, "\uFFFD"), Killed: o.Strays, Survivors: o.Survivors,
		NewShell: o.newShell, SessionLost: o.lost, DurationMS: o.Duration.Milliseconds(),
	}
	if o.Signal != 0 {
		facts.Signal = signalName(o.Signal)
	}
	for room := budget; ; room = room / 2 {
		stdout, stderr := o.fitText(room)
		facts.Stdout, facts.Stderr, facts.Truncated = stdout.String(), stderr.String(), stdout.omitted+stderr.omitted > 0
		text, err := json.Marshal(facts)
		if err != nil {
			return nil // cannot happen: only strings and numbers
		}
		if len(text) <= budget {
			return text
		}
		if room == 0 {
			return nil // not even the other fields fit
		}
	}
}

// share divides room between two outputs. The part that one does not need goes to
// the other.
func share(a, b, room int) (forA, forB int) {
	half := room / 2
	switch {
	case a <= half:
		return a, room - a
	case b <= half:
		return room - b, b
	}
	return half, room - half
}

// shown is one output as the caller sees it.
type shown struct {
	head, tail string
	omitted    int64 // bytes omitted between them; if 0, head is the whole output
}

// String returns the output, with a line in place of the omitted part.
func (s shown) String() string {
	if s.omitted == 0 {
		return s.head
	}
	return s.head + leftOut(s.omitted) + s.tail
}

// lossy converts an output to text, with U+FFFD for invalid UTF-8.
func lossy(c proc.Capture) shown {
	if c.Omitted == 0 {
		return shown{head: strings.ToValidUTF8(string(c.Head), "\uFFFD")}
	}
	head, tail := untilWhole(c.Head), fromWhole(c.Tail)
	return shown{
		head: strings.ToValidUTF8(string(head), "\uFFFD"), tail: strings.ToValidUTF8(string(tail), "\uFFFD"),
		omitted: c.Total - int64(len(head)+len(tail)),
	}
}

// fit removes the middle of an output so that it has at most room bytes, if room
// has space for the notice. Two fifths of the rest are head, three fifths tail.
func (s shown) fit(room int) shown {
	if len(s.String()) <= room {
		return s
	}
	tail := s.tail
	if s.omitted == 0 {
		tail = s.head
	}
	keep := max(0, room-noteRoom)
	atHead := min(len(s.head), keep*2/5)
	atTail := min(len(tail), keep-atHead)
	cut := shown{head: string(untilWhole([]byte(s.head[:atHead]))), tail: string(fromWhole([]byte(tail[len(tail)-atTail:])))}
	cut.omitted = s.omitted + int64(len(s.head)+len(s.tail)-len(cut.head)-len(cut.tail))
	return cut
}

// untilWhole returns text without an incomplete character at its end.
func untilWhole(text []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if rest := text[len(text)-i:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRune(rest) {
				return text[:len(text)-i]
			}
			break
		}
	}
	return text
}

// fromWhole returns text without an incomplete character at its beginning.
func fromWhole(text []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && len(text) > 0 && !utf8.RuneStart(text[0]); i++ {
		text = text[1:]
	}
	return text
}

// noteRoom is the maximum size of the line between head and tail.
const noteRoom = 48

// leftOut returns the line between head and tail.
func leftOut(bytes int64) string {
	return fmt.Sprintf("\n[... %s bytes left out ...]\n", thousands(bytes))
}

// thousands formats a number as in 142,857.
func thousands(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// plural returns n with a noun in the right form.
func plural(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// signalName returns the name of a signal, such as SIGKILL.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}
