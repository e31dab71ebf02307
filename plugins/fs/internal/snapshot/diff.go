package snapshot

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// MaxDiff is the maximum size of a file that is compared.
	MaxDiff = 4 << 20
	// MaxPreview is how much of a change a preview shows.
	MaxPreview = 256 << 10
	// MaxDiffLines is how many lines two texts that are compared have at most, together.
	MaxDiffLines = 200_000
	// diffContext is how many unchanged lines surround a change.
	diffContext = 3
)

// CountChanges counts the lines that a diff adds and removes.
func CountChanges(diff udiff.UnifiedDiff) (added, removed int) {
	for _, hunk := range diff.Hunks {
		for _, line := range hunk.Lines {
			switch line.Kind {
			case udiff.Insert:
				added++
			case udiff.Delete:
				removed++
			case udiff.Equal:
			}
		}
	}
	return added, removed
}

// Difference is a unified diff of two texts.
type Difference struct {
	Text           string
	Added, Removed int
}

// Compare returns the diff that turns before into after; from and to are their names in
// it. It reports false if they are too large.
func Compare(from, to, before, after string) (d Difference, ok bool) {
	if len(before) > MaxDiff || len(after) > MaxDiff || strings.Count(before, "\n")+strings.Count(after, "\n") > MaxDiffLines {
		return Difference{}, false
	}
	unified, err := udiff.ToUnifiedDiff(from, to, before, udiff.Lines(before, after), diffContext)
	if err != nil {
		return Difference{}, false
	}
	d.Text = unified.String()
	d.Added, d.Removed = CountChanges(unified)
	return d, true
}

// CountLineChanges counts the lines that a change adds and removes, in time that grows
// with the distance between the first and the last of them.
func CountLineChanges(before, after string) (added, removed int) {
	same := 0
	for most := min(len(before), len(after)); same < most && before[same] == after[same]; {
		same++
	}
	same = strings.LastIndexByte(before[:same], '\n') + 1
	before, after = before[same:], after[same:]
	for {
		a, b := strings.LastIndexByte(strings.TrimSuffix(before, "\n"), '\n')+1, strings.LastIndexByte(strings.TrimSuffix(after, "\n"), '\n')+1
		if before == "" || after == "" || before[a:] != after[b:] {
			break
		}
		before, after = before[:a], after[:b]
	}
	if d, ok := Compare("", "", before, after); ok {
		return d.Added, d.Removed
	}
	return textfile.CountLines(after), textfile.CountLines(before)
}

// ShowDiff shows what a change does to a file, or says why it cannot. If the diff is too large
// but the new content is not, it shows the new content.
func ShowDiff(path string, before *Snapshot, old, after string, text bool) []tool.Content {
	from, to := display.VisibleName("a/"+path), display.VisibleName("b/"+path)
	if !before.Exists {
		from = "/dev/null"
	}
	if text {
		if d, ok := Compare(from, to, old, after); ok {
			if d.Text == "" && before.Exists {
				return []tool.Content{tool.Text("The content stays the same.")}
			}
			if len(d.Text) <= MaxPreview || len(after) > MaxPreview {
				return append(LineEndNote(old, after), Bounded("diff", d.Text)...)
			}
		}
	}
	why := "There is too much for a diff"
	if !text && before.Kept {
		why = "This is not text, so there is no diff"
	}
	note := fmt.Sprintf("%s.\nold: %s, not shown\nnew: %d bytes, sha256:%x, as follows:", why, before.Describe(), len(after), sha256.Sum256([]byte(after)))
	return append([]tool.Content{tool.Text(note)}, Bounded("content", after)...)
}

// LineEndNote says how the line ends change, which a diff shows as changed lines.
func LineEndNote(before, after string) []tool.Content {
	if from, to := eolName(before), eolName(after); from != to && from != "" && to != "" {
		return []tool.Content{tool.Text(fmt.Sprintf("The line ends change from %s to %s.", from, to))}
	}
	return nil
}

// eolName names the line ends of a text; "" if it has none.
func eolName(text string) string {
	switch {
	case !strings.Contains(text, "\n"):
		return ""
	case textfile.LineEnds(text) == "\n":
		return "LF"
	case textfile.LineEnds(text) == "\r\n":
		return "CRLF"
	default:
		return "LF and CRLF mixed"
	}
}

// Bounded shows a text, or its beginning after a note about the omitted rest.
func Bounded(what, text string) []tool.Content {
	if text == "" {
		return nil
	}
	if len(text) <= MaxPreview {
		return []tool.Content{tool.Text(text)}
	}
	shown := text[:MaxPreview]
	if i := strings.LastIndexByte(shown, '\n'); i >= 0 {
		shown = shown[:i+1]
	} else {
		shown = display.TrimPartial(shown)
	}
	note := fmt.Sprintf("NOT ALL IS SHOWN: the %s has %d bytes in %d lines; %d bytes in %d lines at its end are left out.",
		what, len(text), textfile.CountLines(text), len(text)-len(shown), textfile.CountLines(text[len(shown):]))
	return []tool.Content{tool.Text(note), tool.Text(shown)}
}
