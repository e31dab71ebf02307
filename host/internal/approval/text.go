package approval

import (
	"strings"

	"golang.org/x/text/width"
)

const (
	defaultWidth = 80
	minWidth     = 30
	tabStop      = 8
	// labelWidth is where the texts of facts begin.
	labelWidth = 10
)

// Text returns the view for a terminal of the given width in columns; 0 means
// 80, and 30 is the least. It is plain text: every line begins with the host's
// own mark and is broken before the terminal would break it, so that nothing
// that was given begins a line.
func (v View) Text(columns int) string {
	if columns <= 0 {
		columns = defaultWidth
	}
	columns = max(columns, minWidth)
	var b strings.Builder
	for _, line := range v.Lines {
		first, next := prefixes(line)
		wrap(&b, first, next, line.Text, columns)
	}
	return b.String()
}

// prefixes returns what stands before the first row of a line, and before those
// that follow. No two kinds of words, the host's and others', share one.
func prefixes(line Line) (first, next string) {
	switch line.Kind {
	case Fact:
		label := line.Label + ":"
		return label + strings.Repeat(" ", max(1, labelWidth-len(label))), "    ... "
	case Heading:
		return "", "    ... "
	case Warning:
		return "  ! ", "  ! ... "
	case Omission:
		return "  ~ ", "  ~ ... "
	case Said:
		return "  > ", "  >\\"
	case Argument, Shown, Added, Removed:
	}
	return "  | ", "  |\\"
}

// wrap writes a line in rows of at most the given columns.
func wrap(b *strings.Builder, first, next, text string, columns int) {
	b.WriteString(first)
	column := len(first)
	for _, char := range text {
		advance := columnsOf(char, column)
		if column+advance > columns {
			b.WriteString("\n" + next)
			column = len(next)
			advance = columnsOf(char, column)
		}
		b.WriteRune(char)
		column += advance
	}
	b.WriteByte('\n')
}

// columnsOf returns the most columns that a character takes on a terminal.
func columnsOf(char rune, column int) int {
	if char == '\t' {
		return tabStop - column%tabStop
	}
	switch width.LookupRune(char).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth, width.EastAsianAmbiguous:
		return 2
	case width.Neutral, width.EastAsianNarrow, width.EastAsianHalfwidth:
	}
	return 1
}
