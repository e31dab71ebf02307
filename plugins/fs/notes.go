package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxNotes is how many notes of one list are kept.
	maxNotes = 20
	// maxNote is how long one is: a path can take thousands of bytes.
	maxNote = 300
	// moreRoom is what the note takes that says how many are left out.
	moreRoom = 24
)

// notesRoom is what is left of the budget for notes about what a result does
// not have.
func notesRoom(budget int) int { return min(budget/8, 2<<10) }

// notes are what a model should know of what a result does not have. The zero
// value has none.
type notes struct {
	kept []string
	more int
}

// add adds a note, which is put in brackets.
func (n *notes) add(format string, args ...any) {
	if len(n.kept) == maxNotes {
		n.more++
		return
	}
	n.kept = append(n.kept, "["+shortened(fmt.Sprintf(format, args...), maxNote)+"]")
}

// addError adds what could not be done with an entry.
func (n *notes) addError(e filetree.Entry, err error) { n.add("%s", told(e, err)) }

// told says what could not be done with an entry, and what to do instead.
func told(e filetree.Entry, err error) string {
	failure := tool.AsError(err)
	text, name := failure.Message, tool.VisibleName(e.Path())
	if !strings.Contains(text, name) {
		text = name + ": " + text
	}
	text = shortened(text, maxNote/2)
	if failure.Hint != "" {
		text += "; " + failure.Hint
	}
	return text
}

// text is the notes, as many as there is room for.
func (n *notes) text(room int) string {
	var b strings.Builder
	more := n.more
	for i, note := range n.kept {
		if b.Len()+len(note)+1 > room-moreRoom {
			more += len(n.kept) - i
			break
		}
		b.WriteString(note + "\n")
	}
	if more > 0 {
		fmt.Fprintf(&b, "[%d more notes]", more)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// shortened cuts the middle out of a long text.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const gap = "…"
	from, to := (most-len(gap))/2, len(text)-(most-len(gap))/2
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	return text[:from] + gap + text[to:]
}

// withNotes adds notes to the end of a result.
func withNotes(result tool.Result, n *notes, room int) tool.Result {
	if text := n.text(room); text != "" {
		result.Content = append(result.Content, tool.Text(text))
	}
	return result
}
