package edit

import (
	"iter"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
)

// MaxLines is the maximum number of lines of a file that is edited.
const MaxLines = 2_000_000

// maxTries bounds how many places with the same lines but another indentation are
// examined.
const maxTries = 1000

// textLines are the lines of a text: starts has the offset of each line and, last, the
// length of the text. A line takes a few bytes, since there may be millions. A last line
// without a line end counts.
type textLines struct {
	text   string
	starts []int32
}

// splitLines splits a text of less than 2 GiB.
func splitLines(text string) textLines {
	starts := make([]int32, 0, strings.Count(text, "\n")+2)
	starts = append(starts, 0)
	for at := 0; at < len(text); {
		next := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		starts = append(starts, int32(next))
		at = next
	}
	return textLines{text, starts}
}

// count returns the number of lines.
func (l textLines) count() int { return len(l.starts) - 1 }

// start returns the offset of line i, from 0.
func (l textLines) start(i int) int { return int(l.starts[i]) }

// whole returns line i with its line end.
func (l textLines) whole(i int) string { return l.text[l.starts[i]:l.starts[i+1]] }

// line returns line i without its line end.
func (l textLines) line(i int) string {
	whole := l.whole(i)
	return whole[:len(whole)-len(textfile.LineEnd(whole))]
}

// region returns count lines from line first on.
func (l textLines) region(first, count int) textLines {
	return textLines{l.text, l.starts[first : first+count+1]}
}

// fold returns the part of a line that is compared.
func (t Tolerance) fold(text string) string {
	if t == Exactly {
		return text
	}
	text = strings.TrimRight(text, " \t\r")
	if t == despiteIndentation {
		text = strings.TrimLeft(text, " \t")
	}
	return text
}

// findLines finds Old as whole lines that are equal within the tolerance.
func (r Replacement) findLines(all textLines, how Tolerance) []match {
	if strings.TrimSpace(r.Old) == "" {
		return nil // blank lines are everywhere
	}
	old := splitLines(r.Old)
	style := textfile.LineEnds(all.text)
	var found []match
	tries, next, size := 0, 0, 0
	indented := newIndenting(r.New, all.text)
	for at := range findSequence(all, old, how) {
		if at < next {
			continue // overlaps the one before
		}
		region := all.region(at, old.count())
		replaced := r.New
		if how == despiteIndentation {
			fitting, ok := indented.like(old, region)
			if tries++; !ok && tries > maxTries {
				return nil
			}
			if !ok {
				continue
			}
			replaced = fitting
		}
		m := match{start: region.start(0), end: region.start(region.count()), text: textfile.WithLineEnd(replaced, style)}
		if style == "" {
			m.text = keepEnds(replaced, old, region)
		}
		end := textfile.LineEnd(region.whole(region.count() - 1))
		switch {
		case !strings.HasSuffix(r.Old, "\n"):
			m.end -= len(end)
		case end == "": // the last line of the file has no line end
			m.text = strings.TrimSuffix(strings.TrimSuffix(m.text, "\n"), "\r")
		}
		found = append(found, m)
		next = at + old.count()
		if size += len(m.text); len(found) > maxMatches || size > 2*MaxBytes {
			break
		}
	}
	return found
}

// keepEnds gives the lines of text the line ends of the lines that they replace: the
// region, which was found as old. Equal lines at the beginning and at the end correspond
// to each other, and those in between one by one. Text with its own carriage returns is
// unchanged.
func keepEnds(text string, old, region textLines) string {
	if strings.Contains(text, "\r\n") {
		return text
	}
	now := splitLines(text)
	head, tail := 0, 0
	most := min(now.count(), old.count())
	for head < most && now.line(head) == old.line(head) {
		head++
	}
	for tail < most-head && now.line(now.count()-1-tail) == old.line(old.count()-1-tail) {
		tail++
	}
	var b strings.Builder
	for i := range now.count() {
		like := min(i, max(old.count()-tail-1, 0))
		if back := now.count() - i; back <= tail {
			like = old.count() - back
		}
		end := textfile.LineEnd(now.whole(i))
		if has := textfile.LineEnd(region.whole(like)); end != "" && has != "" {
			end = has
		}
		b.WriteString(now.line(i))
		b.WriteString(end)
	}
	return b.String()
}

// findSequence returns every line where lines equal to old begin.
func findSequence(all, old textLines, how Tolerance) iter.Seq[int] {
	ids := make(lineIDs, old.count())
	pattern := make([]int32, old.count())
	for i := range pattern {
		pattern[i] = ids.add(how.fold(old.line(i)))
	}
	return findPattern(ids.sequence(all, how), pattern)
}

// lineIDs numbers the lines to find, from 1. Equal lines have the same number.
type lineIDs map[string]int32

func (ids lineIDs) add(folded string) int32 {
	id, ok := ids[folded]
	if !ok {
		id = int32(len(ids)) + 1
		ids[folded] = id
	}
	return id
}

// sequence returns the numbers of all lines; 0 is a line that is not to be found.
func (ids lineIDs) sequence(all textLines, how Tolerance) []int32 {
	sequence := make([]int32, all.count())
	for i := range sequence {
		sequence[i] = ids[how.fold(all.line(i))]
	}
	return sequence
}

// findPattern returns every index where pattern begins in sequence, in linear time
// (Knuth, Morris and Pratt).
func findPattern(sequence, pattern []int32) iter.Seq[int] {
	// back[i] is how much of the pattern's beginning ends at i.
	back := make([]int32, len(pattern))
	for i, n := 1, int32(0); i < len(pattern); i++ {
		for n > 0 && pattern[i] != pattern[n] {
			n = back[n-1]
		}
		if pattern[i] == pattern[n] {
			n++
		}
		back[i] = n
	}
	return func(yield func(int) bool) {
		n := 0
		for i, id := range sequence {
			for n > 0 && (n == len(pattern) || pattern[n] != id) {
				n = int(back[n-1])
			}
			if pattern[n] == id {
				n++
			}
			if n == len(pattern) && !yield(i-n+1) {
				return
			}
		}
	}
}
