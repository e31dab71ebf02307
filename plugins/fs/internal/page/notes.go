package page

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxNotes is how many notes one list keeps.
	maxNotes = 20
	// MaxNote is the length of a note in bytes; a path can have thousands.
	MaxNote = 300
	// moreRoom is the size of the note that counts the notes left out.
	moreRoom = 24
)

// NotesRoom returns the part of the budget that is reserved for notes.
func NotesRoom(budget int) int { return min(budget/8, 2<<10) }

// Notes tell a model what a result lacks. The zero value has none.
type Notes struct {
	Kept []string
	more int
}

// Add adds a note, in brackets.
func (n *Notes) Add(format string, args ...any) {
	if len(n.Kept) == maxNotes {
		n.more++
		return
	}
	n.Kept = append(n.Kept, "["+Shorten(fmt.Sprintf(format, args...), MaxNote)+"]")
}

// AddError adds a note about an error with an entry.
func (n *Notes) AddError(e filetree.Entry, err error) { n.Add("%s", Describe(e, err)) }

// Describe describes an error with an entry, and what to do instead.
func Describe(e filetree.Entry, err error) string {
	failure := tool.AsError(err)
	text, name := failure.Message, display.VisibleName(e.Path())
	if !strings.Contains(text, name) {
		text = name + ": " + text
	}
	text = Shorten(text, MaxNote/2)
	if failure.Hint != "" {
		text += "; " + failure.Hint
	}
	return text
}

// Text returns as many notes as fit room bytes.
func (n *Notes) Text(room int) string {
	var b strings.Builder
	more := n.more
	for i, note := range n.Kept {
		if b.Len()+len(note)+1 > room-moreRoom {
			more += len(n.Kept) - i
			break
		}
		b.WriteString(note + "\n")
	}
	if more > 0 {
		fmt.Fprintf(&b, "[%d more notes]", more)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Shorten cuts the middle out of a long text, since both ends of a path matter.
func Shorten(text string, most int) string {
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

// WithNotes adds notes to the end of a result.
func WithNotes(result tool.Result, n *Notes, room int) tool.Result {
	if text := n.Text(room); text != "" {
		result.Content = append(result.Content, tool.Text(text))
	}
	return result
}
