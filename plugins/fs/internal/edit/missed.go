package edit

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxNamed is how many lines an error names.
	maxNamed = 10
	// maxRegionLines and maxRegionBytes are how much of a file an error shows.
	maxRegionLines = 20
	maxRegionBytes = 2000
	// maxVotes is how many lines of the text that was looked for vote for one
	// line of the file.
	maxVotes = 8
	// leastLikeness is how like lines are, in percent, that are shown as such,
	// and maxCompared how much of a line is looked at for that.
	leastLikeness = 50
	maxCompared   = 400
)

// ambiguous says that a text stands in several places.
func ambiguous(path, text string, found []match) *tool.Error {
	lines := make([]int, 0, maxNamed)
	for _, m := range found[:min(len(found), maxNamed)] {
		lines = append(lines, lineAt(text, m.start)-1)
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
	all, sought := splitLines(text), splitLines(old)
	if all.count() == 0 {
		return err.WithHint("the file is empty; use write_file")
	}
	if strings.ContainsRune(old, utf8.RuneError) && !utf8.ValidString(text) {
		return err.WithHint("the file has bytes that are not UTF-8, which are shown as U+FFFD; give the encoding of the file, for this call and for read_file")
	}
	if strings.TrimSpace(old) != "" {
		for at := range findSequence(all, sought, despiteIndentation) {
			return err.WithHint("its lines are indented otherwise there, and it is not clear how the new text must be; copy the text exactly; %s", nearest(all, at, sought.count()))
		}
	}
	candidates := alike(all, sought)
	if len(candidates) == 0 {
		return err.WithHint("nothing in the file is like it; read the file again")
	}
	first := candidates[0]
	if len(candidates) > 1 {
		err = tool.Errorf(tool.NotFound, "%s; similar text is at lines %s", err.Message, numbers(candidates))
	}
	return err.WithHint("copy the text exactly; %s", nearest(all, first, sought.count()))
}

// nearest shows the region of the file, so many lines from the first on, that is
// most like what was looked for.
func nearest(all textLines, first, count int) string {
	count = min(count, maxRegionLines, all.count()-first)
	region := all.text[all.start(first):all.start(first+count)]
	if len(region) > maxRegionBytes {
		region = string(textfile.TrimRune([]byte(region[:maxRegionBytes]))) + "..."
	}
	return fmt.Sprintf("the nearest is at lines %d-%d:\n%s", first+1, first+count, strings.ToValidUTF8(region, "\uFFFD"))
}

// numbers lists lines that are counted from 0.
func numbers(lines []int) string {
	lines = slices.Sorted(slices.Values(lines))
	texts := make([]string, len(lines))
	for i, n := range lines {
		texts[i] = fmt.Sprint(n + 1)
	}
	return strings.Join(texts, ", ")
}

// alike returns the lines where text like the sought one begins, counted from 0
// and the best first.
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

// likest returns the lines where text begins of which no line is quite like the
// sought one, but of which the lines are most like its longest. The scores, one
// for each line, are 0 before.
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

// longest returns which lines are the longest, at most so many and each once.
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

// pairs counts the pairs of bytes that stand beside each other in a line.
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

// likeness is how many of the pairs of two lines are the same, in percent.
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
