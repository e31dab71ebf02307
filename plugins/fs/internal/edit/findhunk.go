package edit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/patch"
	"github.com/toolhost/toolhost/sdk/tool"
)

// hunkFinder locates the hunks of a patch in the lines of a file, one after the other.
type hunkFinder struct {
	path string
	textLines
	hunks []patch.Hunk
	// numbers are the lines as numbers, for each tolerance that was used.
	numbers map[Tolerance]lineNumbers
	// next is the line after the previous hunk, from 0, and shift is the distance of that
	// hunk from the line in its header.
	next, shift int
}

// lineNumbers are the lines of a file as numbers.
type lineNumbers struct {
	ids      lineIDs // of the lines that hunks look for
	sequence []int32
}

// hunkPlace is where a hunk is in the file.
type hunkPlace struct {
	first, count int // lines, from 0
	how          Tolerance
	// shift is the distance from the line in the header of the hunk; 0 if the header names none.
	shift int
}

func newHunkFinder(path, text string, hunks []patch.Hunk) *hunkFinder {
	return &hunkFinder{path: path, textLines: splitLines(text), hunks: hunks, numbers: map[Tolerance]lineNumbers{}}
}

// numbered returns the lines as numbers. Line ends are ignored even for exact matches:
// those in a patch depend on how it got here.
func (p *hunkFinder) numbered(how Tolerance) lineNumbers {
	if known, ok := p.numbers[how]; ok {
		return known
	}
	ids := lineIDs{}
	for i := range p.hunks {
		for _, l := range p.hunks[i].Lines {
			if l.Kind != '+' {
				ids.add(how.foldHunk(l))
			}
		}
	}
	p.numbers[how] = lineNumbers{ids, ids.sequence(p.textLines, how)}
	return p.numbers[how]
}

// foldHunk returns the part of a hunk's line that is compared.
func (t Tolerance) foldHunk(l patch.Line) string { return t.fold(strings.TrimSuffix(l.Text, "\r")) }

// pattern returns the lines of a hunk as numbers.
func (n lineNumbers) pattern(old []patch.Line, how Tolerance) []int32 {
	pattern := make([]int32, len(old))
	for i, l := range old {
		pattern[i] = n.ids[how.foldHunk(l)]
	}
	return pattern
}

// find locates the n-th hunk, after the previous ones: at the line in its header, or else
// at the only place that has its lines.
func (p *hunkFinder) find(n int, h *patch.Hunk) (hunkPlace, error) {
	old := h.Old()
	if len(old) == 0 {
		return p.addition(n, h)
	}
	expected := h.Start - 1 + p.shift
	early := -1
	for _, how := range []Tolerance{Exactly, despiteSpaces} {
		numbers := p.numbered(how)
		pattern := numbers.pattern(old, how)
		f := hunkPlace{first: expected, count: len(old), how: how}
		if h.Start > 0 && expected >= p.next && expected+len(old) <= p.count() && slices.Equal(numbers.sequence[expected:expected+len(old)], pattern) && p.fits(h, f) {
			return p.at(h, f), nil
		}
		var places []int
		for first := range findPattern(numbers.sequence, pattern) {
			f.first = first
			if first < p.next {
				early = first
			} else if p.fits(h, f) {
				places = append(places, first)
			}
		}
		places = p.within(h.Within, places)
		if len(places) > 1 {
			return hunkPlace{}, p.ambiguousHunk(n, h, places)
		}
		if len(places) == 1 {
			f.first = places[0]
			return p.at(h, f), nil
		}
	}
	return hunkPlace{}, p.missedHunk(n, h, early)
}

// at records where the hunk is.
func (p *hunkFinder) at(h *patch.Hunk, f hunkPlace) hunkPlace {
	if h.Start > 0 {
		f.shift = f.first - (h.Start - 1)
		p.shift = f.shift
	}
	p.next = f.first + f.count
	return f
}

// fits reports whether a hunk that must be at the end of the file is there.
func (p *hunkFinder) fits(h *patch.Hunk, f hunkPlace) bool {
	ends := h.AtEnd || slices.ContainsFunc(h.Old(), func(l patch.Line) bool { return l.Open })
	return !ends || f.first+f.count == p.count()
}

// addition locates a hunk that only adds lines: at the end of the file if the hunk says so, or
// in an empty file.
func (p *hunkFinder) addition(n int, h *patch.Hunk) (hunkPlace, error) {
	if p.count() == 0 || h.AtEnd {
		p.next = p.count()
		return hunkPlace{first: p.count()}, nil
	}
	return hunkPlace{}, tool.Errorf(tool.InvalidArgument, "%s only adds lines, and the file is not empty, so their place is ambiguous", p.hunk(n, h)).
		WithHint("add surrounding lines of the file, each with a space before it; nothing was changed")
}

// within returns the places, in order, that are the first ones after the anchors of a
// hunk. The anchors can be read in several ways, so there may be several places; the
// caller reports this and does not choose.
func (p *hunkFinder) within(anchors []string, places []int) []int {
	if len(anchors) == 0 || len(places) == 0 {
		return places
	}
	var narrowed []int
	for _, start := range p.anchored(anchors) {
		i, _ := slices.BinarySearch(places, start)
		if i < len(places) && !slices.Contains(narrowed, places[i]) {
			narrowed = append(narrowed, places[i])
		}
	}
	return narrowed
}

// anchored returns the line of the last anchor, for each way to find the anchors in
// order: as whole lines, or else as parts of lines. A hunk may begin with that line.
func (p *hunkFinder) anchored(anchors []string) []int {
	whole := func(line, anchor string) bool { return line == anchor }
	for _, same := range []func(line, anchor string) bool{whole, strings.Contains} {
		starts := []int{-1}
		for _, anchor := range anchors {
			from := starts[0] + 1
			starts = nil
			folded := despiteIndentation.fold(anchor)
			for i := from; i < p.count(); i++ {
				if same(despiteIndentation.fold(p.line(i)), folded) {
					starts = append(starts, i)
				}
			}
			if len(starts) == 0 {
				break
			}
		}
		if len(starts) > 0 {
			return starts
		}
	}
	return nil
}

// hunk names a hunk in an error.
func (p *hunkFinder) hunk(n int, h *patch.Hunk) string {
	return fmt.Sprintf("Hunk %d of %s (line %d of the patch)", n, display.VisibleName(p.path), h.Line)
}

// ambiguousHunk returns the error for a hunk that fits several places.
func (p *hunkFinder) ambiguousHunk(n int, h *patch.Hunk, places []int) *tool.Error {
	more := ""
	if len(places) > maxNamed {
		more = " and more"
	}
	return tool.Errorf(tool.InvalidArgument, "%s is ambiguous: the file has its lines %d times, at lines %s%s", p.hunk(n, h), len(places), numbers(places[:min(len(places), maxNamed)]), more).
		WithHint("add surrounding lines, correct the line numbers, or put @@ and a line before the hunk that precedes only one of them; nothing was changed")
}

// missedHunk returns the error for a hunk whose lines are not in the file: which line
// differs, and the most similar text. If early is not negative, the lines are at that
// line, before an earlier hunk.
func (p *hunkFinder) missedHunk(n int, h *patch.Hunk, early int) *tool.Error {
	err := tool.Errorf(tool.NotFound, "%s does not apply", p.hunk(n, h))
	told := func(format string, args ...any) *tool.Error {
		return tool.Errorf(tool.NotFound, "%s: %s", err.Message, fmt.Sprintf(format, args...))
	}
	const hint = "read the file and write the patch again; nothing was changed"
	old := h.Old()
	switch {
	case p.count() == 0:
		return told("the file is empty, expected %s", quoted(old[0].Text)).WithHint(hint)
	case early >= 0:
		return told("its lines are at line %d, which is before the end of the hunk before it", early+1).
			WithHint("order the hunks by their lines, with each line in one hunk; nothing was changed")
	case len(h.Within) > 0 && len(p.anchored(h.Within)) == 0:
		return told("expected a line %s from after @@, found none", quoted(h.Within[len(h.Within)-1])).WithHint(hint)
	}
	var sought strings.Builder
	for _, l := range old {
		sought.WriteString(strings.TrimSuffix(l.Text, "\r") + "\n")
	}
	candidates := alike(p.textLines, splitLines(sought.String()))
	if len(candidates) == 0 {
		return told("expected %s, and the file has nothing similar", quoted(old[0].Text)).WithHint(hint)
	}
	first := candidates[0]
	for i, l := range old {
		at := first + i
		if at >= p.count() {
			err = told("expected %s at line %d, found the end of the file", quoted(l.Text), at+1)
			break
		}
		if has := p.line(at); despiteSpaces.fold(has) != despiteSpaces.fold(l.Text) {
			err = told("expected %s at line %d, found %s", quoted(l.Text), at+1, quoted(has))
			break
		}
	}
	return err.WithHint("nothing was changed; %s", nearest(p.textLines, first, len(old)))
}

// quoted shows the beginning of a line in a message.
func quoted(line string) string { return fmt.Sprintf("%.120q", strings.TrimRight(line, "\r")) }
