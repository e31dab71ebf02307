package approval

import (
	"strings"

	"golang.org/x/text/width"
)

const (
	defaultWidth = 80
	minWidth     = 30
	tabStop      = 8
	// labelWidth is the column at which the texts of facts start.
	labelWidth = 10
)

// Text returns the view for a terminal of the given width in columns; 0 means 80, the
// minimum is 30. It is plain text. Every row starts with a mark of the host and ends
// before the terminal would break it, so that words of agents and plugins never start a
// row. The host's own words are broken at spaces.
func (v View) Text(columns int) string { return v.text(columns, nil) }

// Colored is like [View.Text], with the lines that a diff adds and removes in green and red, and
// warnings in yellow, by the escape sequences of a terminal.
func (v View) Colored(columns int) string {
	return v.text(columns, map[LineKind]string{Added: "\x1b[32m", Removed: "\x1b[31m", Warning: "\x1b[33m"})
}

const plainColor = "\x1b[m"

func (v View) text(columns int, colors map[LineKind]string) string {
	if columns <= 0 {
		columns = defaultWidth
	}
	columns = max(columns, minWidth)
	var b strings.Builder
	for _, line := range v.Lines {
		first, next := prefixes(line)
		r := rowWriter{b: &b, next: next, columns: columns}
		color := colors[line.Kind]
		b.WriteString(color)
		r.begin(first)
		switch line.Kind {
		case Fact, Heading, Warning, Omission:
			r.words(line.Text)
		case Said, Argument, Shown, Added, Removed:
			r.characters(line.Text)
		}
		if color != "" {
			b.WriteString(plainColor)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// prefixes returns the prefix of the first row of a line, and that of the following rows.
// Words of the host and words of others never have the same prefix.
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

// rowWriter writes a line in rows of at most columns columns.
type rowWriter struct {
	b       *strings.Builder
	next    string // the prefix of each row after the first
	columns int
	column  int
}

func (r *rowWriter) begin(prefix string) {
	r.b.WriteString(prefix)
	r.column = len(prefix)
}

// words writes text that is broken before spaces, and inside a word only if that is
// longer than a row. It keeps the space, so that the two words do not look like one.
func (r *rowWriter) words(text string) {
	for text != "" {
		blanks := len(text) - len(strings.TrimLeft(text, " "))
		end := len(text)
		if i := strings.IndexByte(text[blanks:], ' '); i >= 0 {
			end = blanks + i
		}
		word := text[:end]
		if after(word, r.column) > r.columns && after(word, len(r.next)) <= r.columns {
			r.b.WriteByte('\n')
			r.begin(r.next)
		}
		r.characters(word)
		text = text[end:]
	}
}

// after returns the column after a text that begins at a column.
func after(text string, column int) int {
	for _, char := range text {
		column += columnsOf(char, column)
	}
	return column
}

// characters writes text that may be broken before each character.
func (r *rowWriter) characters(text string) {
	for _, char := range text {
		advance := columnsOf(char, r.column)
		if r.column+advance > r.columns {
			r.b.WriteByte('\n')
			r.begin(r.next)
			advance = columnsOf(char, r.column)
		}
		r.b.WriteRune(char)
		r.column += advance
	}
}

// columnsOf returns the maximum number of columns that a character takes on a terminal.
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
