package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxNamed is how many lines an error names.
	maxNamed = 10
	// maxRegion is how much of a file an error shows, in lines and bytes.
	maxRegionLines = 20
	maxRegionBytes = 2000
	// maxVotes is how many lines of the text that was looked for vote for one
	// line of the file.
	maxVotes = 8
)

// ambiguous says that a text stands in several places.
func ambiguous(path, text string, found []match) *tool.Error {
	lines := make([]int, 0, maxNamed)
	for _, m := range found[:min(len(found), maxNamed)] {
		lines = append(lines, lineAt(text, m.start))
	}
	more := ""
	if len(found) > maxNamed {
		more = " and more"
	}
	return tool.Errorf(tool.InvalidArgument, "The text to replace is in %s %d times, at lines %s%s", tool.VisibleName(path), len(found), numbers(lines), more).
		WithHint("give more of the lines around the one that is meant, or set replace_all")
}

// missed says that a text is not there, and what is most like it.
func missed(path, text, old string) *tool.Error {
	err := tool.Errorf(tool.NotFound, "The text to replace was not found in %s", tool.VisibleName(path))
	lines := splitLines(text)
	if len(lines) == 0 {
		return err.WithHint("the file is empty; use write_file")
	}
	candidates := alike(text, lines, old)
	if len(candidates) == 0 {
		return err.WithHint("nothing in the file is like it; read the file again")
	}
	if len(candidates) > 1 {
		err = tool.Errorf(tool.NotFound, "%s; similar text is at lines %s", err.Message, numbers(candidates))
	}
	return err.WithHint("copy the text exactly; %s", nearest(text, lines, candidates[0], len(splitLines(old))))
}

// nearest shows the region of the file, so many lines from the first on, that is
// most like what was looked for.
func nearest(text string, lines []line, first, count int) string {
	last := min(len(lines), first-1+min(count, maxRegionLines))
	region := text[lines[first-1].start:lines[last-1].next]
	if len(region) > maxRegionBytes {
		region = string(trimRune([]byte(region[:maxRegionBytes]))) + "..."
	}
	return fmt.Sprintf("the nearest is at lines %d-%d:\n%s", first, last, strings.ToValidUTF8(region, "\uFFFD"))
}

func numbers(lines []int) string {
	lines = slices.Sorted(slices.Values(lines))
	texts := make([]string, len(lines))
	for i, n := range lines {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, ", ")
}

// alike returns the lines, counted from 1 and the best first, where text like
// old begins.
func alike(text string, lines []line, old string) []int {
	votes := make([]int, len(lines))
	some := false
	sought := map[string][]int{}
	for i, l := range splitLines(old) {
		if folded := despiteIndentation.fold(l.of(old)); folded != "" && len(sought[folded]) < maxVotes {
			sought[folded] = append(sought[folded], i)
		}
	}
	for i, l := range lines {
		for _, at := range sought[despiteIndentation.fold(l.of(text))] {
			votes[max(i-at, 0)]++
			some = true
		}
	}
	if !some {
		return likest(text, lines, old)
	}
	best := slices.Max(votes)
	var found []int // the most votes first, then the first line
	for start, n := range votes {
		if n == 0 || 2*n < best || len(found) == maxNamed && n <= votes[found[maxNamed-1]-1] {
			continue
		}
		i := len(found)
		for i > 0 && votes[found[i-1]-1] < n {
			i--
		}
		found = slices.Insert(found, i, start+1)
		found = found[:min(len(found), maxNamed)]
	}
	return found
}

// likest returns the lines most like the first of old that is not blank.
func likest(text string, lines []line, old string) []int {
	first, offset := "", 0
	for i, l := range splitLines(old) {
		if first = despiteIndentation.fold(l.of(old)); first != "" {
			offset = i
			break
		}
	}
	best := 0
	var found []int
	for i, l := range lines {
		score := likeness(first, despiteIndentation.fold(l.of(text)))
		if score < 50 || score < best {
			continue
		}
		if score > best {
			best, found = score, found[:0]
		}
		if len(found) < maxNamed {
			found = append(found, max(i-offset, 0)+1)
		}
	}
	return found
}

// likeness is how much of two lines is the same at their beginning and end, in
// percent of the longer.
func likeness(a, b string) int {
	most, least := max(len(a), len(b)), min(len(a), len(b))
	if least == 0 {
		return 0
	}
	head, tail := 0, 0
	for head < least && a[head] == b[head] {
		head++
	}
	for tail < least-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return 100 * (head + tail) / most
}
