package main

import (
	"strings"
)

// maxTries is how many regions with lines of the same text may be indented in
// another way than what is looked for.
const maxTries = 1000

// line is where a line is in a text: its line end is from end to next.
type line struct{ start, end, next int }

// splitLines finds the lines of a text. A last line without a line end counts.
func splitLines(text string) []line {
	lines := make([]line, 0, strings.Count(text, "\n")+1)
	for at := 0; at < len(text); {
		l := line{start: at, end: len(text), next: len(text)}
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			l.end, l.next = at+i, at+i+1
			if i > 0 && text[l.end-1] == '\r' {
				l.end--
			}
		}
		lines = append(lines, l)
		at = l.next
	}
	return lines
}

// of returns the line without its end.
func (l line) of(text string) string { return text[l.start:l.end] }

// fold returns what is compared of a line.
func (t tolerance) fold(text string) string {
	if t == exactly {
		return text
	}
	text = strings.TrimRight(text, " \t\r")
	if t == despiteIndentation {
		text = strings.TrimLeft(text, " \t")
	}
	return text
}

// findLines finds old as whole lines that are the same but for what is
// tolerated.
func (r replacement) findLines(text string, lines []line, how tolerance) []match {
	if strings.TrimSpace(r.Old) == "" {
		return nil // blank lines are everywhere
	}
	old := splitLines(r.Old)
	style := eolOf(text)
	var found []match
	tries, next, size := 0, 0, 0
	for _, at := range findSequence(text, lines, r.Old, old, how) {
		if at < next {
			continue // overlaps the one before
		}
		region := lines[at : at+len(old)]
		replaced := r.New
		if how == despiteIndentation {
			indents, ok := indentation(text, region, r.Old, old)
			if tries++; !ok && tries > maxTries {
				return nil
			}
			if !ok {
				continue
			}
			replaced = indents.apply(replaced)
		}
		last := region[len(region)-1]
		m := match{start: region[0].start, end: last.end, text: fitEOL(replaced, style)}
		if strings.HasSuffix(r.Old, "\n") {
			if last.next > last.end {
				m.end = last.next
			} else { // the last line of the file has no line end
				m.text = strings.TrimSuffix(strings.TrimSuffix(m.text, "\n"), "\r")
			}
		}
		found = append(found, m)
		next = at + len(old)
		if size += len(m.text); len(found) > maxMatches || size > 2*maxEdit {
			break
		}
	}
	return found
}

// findSequence returns every line where the lines of old begin, in time that
// grows with the number of lines only (Knuth, Morris and Pratt).
func findSequence(text string, lines []line, oldText string, old []line, how tolerance) []int {
	ids := make(map[string]int, len(old))
	pattern := make([]int, len(old))
	for i, l := range old {
		folded := how.fold(l.of(oldText))
		id, ok := ids[folded]
		if !ok {
			id = len(ids) + 1
			ids[folded] = id
		}
		pattern[i] = id
	}
	sequence := make([]int, len(lines))
	for i, l := range lines {
		sequence[i] = ids[how.fold(l.of(text))]
	}
	return findPattern(sequence, pattern)
}

// findPattern returns every index where the pattern begins in the sequence.
func findPattern(sequence, pattern []int) []int {
	// back[i] is how much of the pattern's beginning ends at i.
	back := make([]int, len(pattern))
	for i, n := 1, 0; i < len(pattern); i++ {
		for n > 0 && pattern[i] != pattern[n] {
			n = back[n-1]
		}
		if pattern[i] == pattern[n] {
			n++
		}
		back[i] = n
	}
	var found []int
	n := 0
	for i, id := range sequence {
		for n > 0 && (n == len(pattern) || pattern[n] != id) {
			n = back[n-1]
		}
		if pattern[n] == id {
			n++
		}
		if n == len(pattern) {
			found = append(found, i-n+1)
		}
	}
	return found
}

// indents maps the indentation that a caller wrote to that of the file.
type indents map[string]string

// indentation learns how the lines of old are indented in the region. It is
// not ok if the same indentation means two there.
func indentation(text string, region []line, oldText string, old []line) (indents, bool) {
	known := indents{}
	for i, l := range old {
		given := l.of(oldText)
		if strings.TrimSpace(given) == "" {
			continue
		}
		from, to := indentOf(given), indentOf(region[i].of(text))
		if before, ok := known[from]; ok && before != to {
			return nil, false
		}
		known[from] = to
	}
	return known, true
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// apply indents text as the file is.
func (known indents) apply(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		indent := indentOf(l)
		if strings.TrimSpace(l) == "" {
			b.WriteString(l)
			continue
		}
		b.WriteString(known.of(indent))
		b.WriteString(l[len(indent):])
	}
	return b.String()
}

// of returns the indentation in the file: the one that is known, or that of the
// longest known beginning and then the rest.
func (known indents) of(indent string) string {
	for n := len(indent); n >= 0; n-- {
		if to, ok := known[indent[:n]]; ok {
			return to + indent[n:]
		}
	}
	return known.lessThan(indent)
}

// lessThan returns the indentation of a line that is indented less than every
// known one: what the least indented has more in the file is taken along.
func (known indents) lessThan(indent string) string {
	least, found := "", false
	for from := range known {
		if strings.HasPrefix(from, indent) && (!found || len(from) < len(least)) {
			least, found = from, true
		}
	}
	if to := known[least]; found && strings.HasSuffix(to, least[len(indent):]) {
		return strings.TrimSuffix(to, least[len(indent):])
	}
	return indent
}
