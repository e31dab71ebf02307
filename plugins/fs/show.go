package main

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolhost/toolhost/plugins/fs/internal/dfa"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxPreview is how much of a change a preview shows.
	maxPreview = 256 << 10
	// maxDiffLines is how many lines two texts may have to be compared.
	maxDiffLines = 200_000
	// diffContext is how many unchanged lines stand around a change.
	diffContext = 3
)

// difference is a unified diff of two texts.
type difference struct {
	text           string
	added, removed int
}

// compare returns the diff that turns before into after, which are called by
// the names in it. It is not ok if they are too large for that.
func compare(from, to, before, after string) (d difference, ok bool) {
	if len(before) > maxDiff || len(after) > maxDiff || strings.Count(before, "\n")+strings.Count(after, "\n") > maxDiffLines {
		return difference{}, false
	}
	unified, err := udiff.ToUnifiedDiff(from, to, before, udiff.Lines(before, after), diffContext)
	if err != nil {
		return difference{}, false
	}
	d.text = unified.String()
	d.added, d.removed = countChanges(unified)
	return d, true
}

// countLineChanges counts the lines that a change adds and removes, in time
// that grows with what is between the first and the last of them.
func countLineChanges(before, after string) (added, removed int) {
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
	if d, ok := compare("", "", before, after); ok {
		return d.added, d.removed
	}
	return countLines(after), countLines(before)
}

// showDiff shows what becomes of a file, or says what it cannot show. If the
// diff is too large but the new content is not, that is what counts.
func showDiff(path string, before *snapshot, old, after string, text bool) []tool.Content {
	from, to := tool.VisibleName("a/"+path), tool.VisibleName("b/"+path)
	if !before.exists {
		from = "/dev/null"
	}
	if text {
		if d, ok := compare(from, to, old, after); ok {
			if d.text == "" && before.exists {
				return []tool.Content{tool.Text("The content stays the same.")}
			}
			if len(d.text) <= maxPreview || len(after) > maxPreview {
				return append(eolNote(old, after), bounded("diff", d.text)...)
			}
		}
	}
	why := "There is too much for a diff"
	if !text && before.kept {
		why = "This is not text, so there is no diff"
	}
	note := fmt.Sprintf("%s.\nold: %s, not shown\nnew: %d bytes, sha256:%x, as follows:", why, before.describe(), len(after), sha256.Sum256([]byte(after)))
	return append([]tool.Content{tool.Text(note)}, bounded("content", after)...)
}

// eolNote says how the line ends change, which a diff shows as changed lines.
func eolNote(before, after string) []tool.Content {
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
	case eolOf(text) == "\n":
		return "LF"
	case eolOf(text) == "\r\n":
		return "CRLF"
	default:
		return "LF and CRLF mixed"
	}
}

// bounded shows all of a text, or its beginning after a note that says what is
// missing.
func bounded(what, text string) []tool.Content {
	if text == "" {
		return nil
	}
	if len(text) <= maxPreview {
		return []tool.Content{tool.Text(text)}
	}
	shown := text[:maxPreview]
	if i := strings.LastIndexByte(shown, '\n'); i >= 0 {
		shown = shown[:i+1]
	} else {
		shown = string(dfa.TrimRune([]byte(shown)))
	}
	note := fmt.Sprintf("NOT ALL IS SHOWN: the %s has %d bytes in %d lines; %d bytes in %d lines at its end are left out.",
		what, len(text), countLines(text), len(text)-len(shown), countLines(text[len(shown):]))
	return []tool.Content{tool.Text(note), tool.Text(shown)}
}

func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// plural returns "1 file" or "2 files".
func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}
