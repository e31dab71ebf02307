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

// outcome is how a command has ended.
type outcome struct {
	proc.Result
	cwd     string        // "" if nobody knows
	timeout time.Duration // the time that it had
	short   bool          // that was less than it asked for: its call had no more
	// newShell says that it was the first command of its session's shell, replaced
	// that nobody was told that another one has ended, and lost that the shell has
	// ended with it.
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

// result is what the caller gets, in as many bytes of text, and of structured
// result, as are given.
func (o outcome) result(budget int) tool.Result {
	result := tool.Result{Error: o.failure()}
	stdout, stderr := o.fitText(budget)
	if text := o.text(stdout, stderr); text != "" {
		result.Content = []tool.Content{tool.Text(text)}
	}
	result.Structured = o.structured(budget)
	return result
}

// failure is why the command counts as failed, nil if it does not.
func (o outcome) failure() *tool.Error {
	var e *tool.Error
	hint := ""
	switch {
	case o.TimedOut:
		e = tool.Errorf(tool.Timeout, "The command had not ended after %v and was killed", o.timeout.Round(time.Second/10))
		hint = "give a longer timeout, or run it with shell_background"
		if o.short {
			hint = "that is all the time that its call had; run it with shell_background"
		}
	case o.Signal != 0:
		e, hint = tool.Errorf(tool.Failed, "Exit code: -1"), "it was ended by the signal "+signalName(o.Signal)
	case o.ExitCode != 0:
		e = tool.Errorf(tool.Failed, "Exit code: %d", o.ExitCode)
	default:
		return nil
	}
	switch {
	case o.Signal == unix.SIGXCPU:
		hint = "it was killed: it has used up the processor time that a process may have"
	case o.Signal == unix.SIGXFSZ:
		hint = "it was killed: it wrote a larger file than it may"
	case o.lost:
		hint = strings.TrimPrefix(hint+"; the shell of the session has ended: its variables, functions and directory are lost", "; ")
	}
	if hint == "" {
		return e
	}
	return e.WithHint("%s", hint)
}

// text joins both outputs, and what is to be known about them.
func (o outcome) text(stdout, stderr shown) string {
	text := joined(stdout.String(), stderr.String())
	if o.Background {
		text = line(text) + fmt.Sprintf("[killed at the command's end: %s that it left running; use shell_background for what is to go on]\n",
			plural(o.Strays, "process", "processes"))
	}
	if o.Survivors > 0 {
		text = line(text) + fmt.Sprintf("[%s could not be killed and may go on]\n", plural(o.Survivors, "process", "processes"))
	}
	if o.replaced {
		text = line(text) + "[this ran in a new shell: the session's earlier one has ended, with its directory, variables, functions and background processes]\n"
	}
	if o.lost && o.failure() == nil {
		text = line(text) + "[the shell of the session has ended; the next command gets a new one]\n"
	}
	if stdout.omitted+stderr.omitted > 0 {
		text = line(text) + fmt.Sprintf("[output truncated — original size: %s bytes]", thousands(o.Stdout.Total+o.Stderr.Total))
	}
	return text
}

// joined is the text of two outputs: bare if there is one.
func joined(stdout, stderr string) string {
	switch {
	case stderr == "":
		return stdout
	case stdout == "":
		return stderr
	}
	return fmt.Sprintf("stdout:\n%s\n\nstderr:\n%s", stdout, stderr)
}

// line ends the last line of text, if there is one.
func line(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// around is the room for what stands around the outputs in a text.
const around = 512

// fitText cuts the outputs so that their text has budget bytes at most.
func (o outcome) fitText(budget int) (stdout, stderr shown) {
	out, err := lossy(o.Stdout), lossy(o.Stderr)
	room := max(0, budget-around)
	forOut, forErr := share(len(out.String()), len(err.String()), room)
	return out.fit(forOut), err.fit(forErr)
}

// structured returns the result as JSON of budget bytes at most: escaped, the
// outputs can be several times as long.
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
			return nil // strings and numbers can be marshalled
		}
		if len(text) <= budget {
			return text
		}
		if room == 0 {
			return nil // not even the facts fit
		}
	}
}

// share divides room between two outputs: what one does not need is the other's.
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

// shown is what a caller gets of one output.
type shown struct {
	head, tail string
	omitted    int64 // bytes between them; all is in head if there are none
}

// String returns the output, with a line where something is left out.
func (s shown) String() string {
	if s.omitted == 0 {
		return s.head
	}
	return s.head + leftOut(s.omitted) + s.tail
}

// lossy makes text of what was kept, with U+FFFD for what is none.
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

// fit cuts the middle out of an output so that it has room bytes at most, if
// room has place for a note: two fifths are its head, three its tail.
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

// untilWhole returns text without the part of a character at its end.
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

// fromWhole returns text without the part of a character at its beginning.
func fromWhole(text []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && len(text) > 0 && !utf8.RuneStart(text[0]); i++ {
		text = text[1:]
	}
	return text
}

// noteRoom is what the line between a head and a tail takes at most.
const noteRoom = 48

// leftOut is the line between a head and a tail.
func leftOut(bytes int64) string {
	return fmt.Sprintf("\n[... %s bytes left out ...]\n", thousands(bytes))
}

// thousands writes a number as in 142,857.
func thousands(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// plural returns n with the word for one or for several.
func plural(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// signalName returns a signal's name, as in SIGKILL.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}
