package main

import (
	"slices"
	"time"
)

// maxNewest bounds the bytes of the lines that [newest] keeps.
const maxNewest = 16 << 20

// newest keeps the lines of the entries that changed last, as many as a page needs.
type newest struct {
	most int
	kept []datedLine
	size int // bytes of the lines
}

type datedLine struct {
	text     string
	modified time.Time
}

// add adds a line. Entries that changed at the same time keep their order.
func (n *newest) add(text string, modified time.Time) {
	n.kept = append(n.kept, datedLine{text, modified})
	if n.size += len(text); len(n.kept) >= 2*n.most || n.size > 2*maxNewest {
		n.cut()
	}
}

// cut drops the lines that no page needs.
func (n *newest) cut() {
	slices.SortStableFunc(n.kept, func(a, b datedLine) int { return b.modified.Compare(a.modified) })
	n.size = 0
	for i, line := range n.kept {
		if n.size += len(line.text); i == n.most || n.size > maxNewest {
			clear(n.kept[i:])
			n.kept = n.kept[:i]
			n.size -= len(line.text)
			return
		}
	}
}

// lines returns the lines, the newest first.
func (n *newest) lines() []string {
	n.cut()
	lines := make([]string, len(n.kept))
	for i, line := range n.kept {
		lines[i] = line.text
	}
	return lines
}
