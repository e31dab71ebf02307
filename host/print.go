package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Text from plugins, models and files is made visible before it reaches a terminal: it could
// move the cursor, hide characters, or imitate the host.

// line returns untrusted text as one line.
func line(text string) string {
	return strings.Join(strings.Fields(tool.Visible(text)), " ")
}

// paragraph returns untrusted text with all lines but the first indented, so that none
// imitates the host.
func paragraph(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(tool.Visible(text)), "\n", "\n    ")
}

// head returns the first characters of a line.
func head(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return excerpt.Characters(text, most-1) + "…"
}

// printJSON prints v indented, with invisible characters escaped.
func (a *app) printJSON(v any) error {
	text, err := indented(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.stdout, text, "\n")
	return err
}

// indented returns v as JSON for people, without a final newline.
func indented(v any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return "", err
	}
	return escapeUnseen(strings.TrimSuffix(text.String(), "\n")), nil
}

// escapeUnseen escapes invisible characters in JSON.
func escapeUnseen(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// printJSONLine prints v on one line, as JSON Lines, with invisible characters escaped.
func (a *app) printJSONLine(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, escapeUnseen(string(text)))
	return err
}

// viewText returns a view as text for w: as wide as its terminal, and in color unless NO_COLOR is set.
func viewText(v approval.View, w io.Writer) string {
	if !isTerminal(w) {
		return v.Text(0)
	}
	width := columns(w)
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return v.Text(width)
	}
	return v.Colored(width)
}

// fdOf returns the file descriptor of a writer; ok is false if it has none.
func fdOf(w any) (fd uintptr, ok bool) {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	return f.Fd(), true
}

// columns returns the width of a terminal, or 0 if it is not known.
func columns(w any) int {
	fd, ok := fdOf(w)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool {
	fd, ok := fdOf(w)
	return ok && isatty.IsTerminal(fd)
}

// newTable returns a table whose columns are separated by tabs.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }
