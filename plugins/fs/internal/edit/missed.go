package edit

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxNamed is how many lines an error lists.
	maxNamed = 10
	// maxRegionLines and maxRegionBytes are how much of a file an error shows.
	maxRegionLines = 20
	maxRegionBytes = 2000
	// maxVotes is how many lines of the text can vote for one line of the file.
	maxVotes = 8
	// leastLikeness is the similarity, in percent, from which a line is shown as similar,
	// and maxCompared is how many bytes of a line are compared.
	leastLikeness = 50
	maxCompared   = 400
)

// ambiguous returns the error for a text that occurs several times.
func ambiguous(path, text string, found []match) *tool.Error {
	lines := make([]int, 0, maxNamed)
	for _, m := range found[:min(len(found), maxNamed)] {
		lines = append(lines, lineAt(text, m.start)-1)
	}
	more := ""
	if len(found) > maxNamed {
		more = " and more"
	}
	return tool.Errorf(tool.InvalidArgument, "The text to replace is in %s %d times, at lines %s%s", display.VisibleName(path), len(found), numbers(lines), more).
		WithHint("add surrounding lines until it is unique, or set replace_all")
}

// missed returns the error for a text that was not found, with the most similar text.
func missed(path, text, old string) *tool.Error {
	err := tool.Errorf(tool.NotFound, "The text to replace was not found in %s", display.VisibleName(path))
	all, sought := splitLines(text), splitLines(old)
	if all.count() == 0 {
		return err.WithHint("the file is empty; use write_file")
	}
	if strings.ContainsRune(old, utf8.RuneError) && !utf8.ValidString(text) {
		return err.WithHint("the file has bytes that are not UTF-8, which are shown as U+FFFD; give the encoding of the file, for this call and for read_file")
	}
	if strings.TrimSpace(old) != "" {
		for at := range findSequence(all, sought, despiteIndentation) {
			return err.WithHint("its lines have another indentation there, and the one of the new text is ambiguous; copy the text exactly; %s", nearest(all, at, sought.count()))
		}
	}
	candidates := alike(all, sought)
	if len(candidates) == 0 {
		return err.WithHint("the file has nothing similar; read it again")
	}
	first := candidates[0]
	if len(candidates) > 1 {
		err = tool.Errorf(tool.NotFound, "%s; similar text is at lines %s", err.Message, numbers(candidates))
	}
	return err.WithHint("copy the text exactly; %s", nearest(all, first, sought.count()))
}

// nearest shows count lines of the file from line first on, which are the most similar.
func nearest(all textLines, first, count int) string {
	count = min(count, maxRegionLines, all.count()-first)
	region := all.text[all.start(first):all.start(first+count)]
	if len(region) > maxRegionBytes {
		region = display.Cut(region, maxRegionBytes)
	}
	return fmt.Sprintf("the nearest is at lines %d-%d:\n%s", first+1, first+count, strings.ToValidUTF8(region, "\uFFFD"))
}

// numbers lists lines, which are counted from 0.
func numbers(lines []int) string {
	lines = slices.Sorted(slices.Values(lines))
	texts := make([]string, len(lines))
	for i, n := range lines {
		texts[i] = fmt.Sprint(n + 1)
	}
	return strings.Join(texts, ", ")
}

// alike returns the lines, from 0, where text similar to sought begins, the best first.
func alike(all, sought textLines) []int {
	votes := make([]int32, all.count())
	some := false
	wanted := map[string][]int{}
	for i := range sought.count() {
		if folded := despiteIndentation.fold(sought.line(i)); folded != "" && len(wanted[folded]) < maxVotes {
			wanted[folded] = append(wanted[folded], i)
		}
	}
	for i := range votes {
		for _, at := range wanted[despiteIndentation.fold(all.line(i))] {
			votes[max(i-at, 0)]++
			some = true
		}
	}
	if !some {
		return likest(votes, all, sought)
	}
	best := slices.Max(votes)
	var found []int // the most votes first, then the first line
	for start, n := range votes {
		if n == 0 || 2*n < best || len(found) == maxNamed && n <= votes[found[maxNamed-1]] {
			continue
		}
		i := len(found)
		for i > 0 && votes[found[i-1]] < n {
			i--
		}
		found = slices.Insert(found, i, start)
		found = found[:min(len(found), maxNamed)]
	}
	return found
}

// likest returns the lines where text begins whose lines resemble the longest lines of
// sought, if no line equals one of them. scores has a 0 for each line.
func likest(scores []int32, all, sought textLines) []int {
	for _, at := range longest(sought, maxVotes) {
		pairs := pairsOf(despiteIndentation.fold(sought.line(at)))
		for i := range scores {
			if score := pairs.likeness(despiteIndentation.fold(all.line(i))); score >= leastLikeness {
				scores[max(i-at, 0)] += int32(score)
			}
		}
	}
	best := slices.Max(scores)
	var found []int
	for start, score := range scores {
		if score == best && best > 0 && len(found) < maxNamed {
			found = append(found, start)
		}
	}
	return found
}

// longest returns the longest lines, each once and at most most.
func longest(all textLines, most int) []int {
	var found []int
	seen := map[string]bool{}
	for i := range all.count() {
		if seen[all.line(i)] || len(all.line(i)) < 2 {
			continue
		}
		seen[all.line(i)] = true
		at := len(found)
		for at > 0 && len(all.line(found[at-1])) < len(all.line(i)) {
			at--
		}
		if at < most {
			found = slices.Insert(found, at, i)
			found = found[:min(len(found), most)]
		}
	}
	return found
}

// pairs counts the pairs of adjacent bytes of a line.
type pairs struct {
	counts [1 << 16]int16
	total  int
}

func pairsOf(line string) *pairs {
	p := &pairs{}
	line = line[:min(len(line), maxCompared)]
	for i := 1; i < len(line); i++ {
		p.counts[pairAt(line, i)]++
		p.total++
	}
	return p
}

func pairAt(line string, i int) int { return int(line[i-1])<<8 | int(line[i]) }

// likeness returns how many pairs two lines have in common, in percent.
func (p *pairs) likeness(line string) int {
	line = line[:min(len(line), maxCompared)]
	total := max(len(line)-1, 0)
	if both := p.total + total; both == 0 || 200*min(p.total, total) < leastLikeness*both {
		return 0
	}
	same := 0
	for i := 1; i < len(line); i++ {
		at := pairAt(line, i)
		if p.counts[at] > 0 {
			same++
		}
		p.counts[at]--
	}
	for i := 1; i < len(line); i++ {
		p.counts[pairAt(line, i)]++
	}
	return 200 * same / (p.total + total)
}
