package transport

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/sdk/display"
)

const (
	// maxLine is how much of a line of text is kept.
	maxLine = 1 << 10
	// tailLines is how many lines of standard error are kept for errors.
	tailLines = 20
)

// Tail splits what a server writes to standard error into lines and keeps the last ones. It is safe
// for concurrent use.
type Tail struct {
	// Line gets each line, bounded and with every character visible. It must not block.
	Line func(line string)
	// Redact hides secrets in a line.
	Redact func(line string) string

	mu    sync.Mutex // guards everything below
	part  []byte     // of a line that is not complete
	lines []string
}

// Write adds output.
func (t *Tail) Write(data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		line, rest, complete := bytes.Cut(data, []byte("\n"))
		if room := maxLine - len(t.part); room > 0 {
			t.part = append(t.part, line[:min(len(line), room)]...)
		}
		if !complete {
			return
		}
		t.end()
		data = rest
	}
}

// end ends a line. t.mu is held.
func (t *Tail) end() {
	line := t.shown(t.part)
	t.part = t.part[:0]
	if line == "" {
		return
	}
	if len(t.lines) == tailLines {
		t.lines = t.lines[1:]
	}
	t.lines = append(t.lines, line)
	t.Line(line)
}

// shown returns a line as logs and errors show it.
func (t *Tail) shown(line []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(line), "\uFFFD"))
	return display.Visible(t.Redact(text))
}

// Last returns the last lines, joined, with the end of the text if it is longer than most.
func (t *Tail) Last(most int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	if part := t.shown(t.part); part != "" {
		lines = append(slices.Clip(lines), part)
	}
	var text string
	for _, line := range slices.Backward(lines) {
		if len(line)+len(text) > most && text != "" {
			break
		}
		text = strings.TrimSuffix(line+" | "+text, " | ")
	}
	return display.Cut(text, most)
}
