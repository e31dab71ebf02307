package textfile

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/display"
)

// plainExcerpt is the content of the window, computed in the simplest way from all lines.
func plainExcerpt(text string, w Window) Excerpt {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	crlf := strings.Count(text, "\r\n")
	e := Excerpt{
		First: w.Offset, Last: w.Offset - 1, Lines: len(lines), Ended: true,
		crlf: crlf, lf: strings.Count(text, "\n") - crlf,
	}
	column := max(w.Column, 1)
	if i := w.Offset - 1; column > 1 && i < len(lines) {
		first := lines[i]
		content := strings.TrimSuffix(first, "\n")
		at := column - 1
		for at > 0 && at < len(content) && !utf8.RuneStart(content[at]) && len(display.TrimPartial([]byte(content[:at]))) < at {
			at++
		}
		if at > len(content) || at == len(first) {
			e.Short, e.Length = true, len(content)
			return e
		}
		column = at + 1
		lines[i] = first[at:]
	}
	for i := w.Offset - 1; i < len(lines) && e.Last-e.First+1 < w.Limit; i++ {
		number := ""
		if w.Numbered {
			number = fmt.Sprintf("%6d\t", i+1)
		}
		if len(e.Text)+len(number)+len(lines[i]) > w.Budget {
			if i == w.Offset-1 {
				e.Text = display.TrimPartial([]byte(number + lines[i][:max(w.Budget-len(number), 0)]))
				e.Last, e.Cut, e.Next = i+1, true, column+len(e.Text)-len(number)
			}
			break
		}
		e.Text = append(append(e.Text, number...), lines[i]...)
		e.Last = i + 1
	}
	return e
}

// For any division of the text, the window shows the same as the simple way.
func FuzzWindow(f *testing.F) {
	f.Add("a\nb\nc\n", 2, 1, 1, 100)
	f.Add("a\r\nb", 1, 1, 5, 3)
	f.Add("", 1, 1, 1, 1)
	f.Add("", 1, 2, 1, 1)
	f.Add("\n\n\n", 3, 1, 1, 0)
	f.Add("éé\né", 1, 1, 9, 3)
	f.Add("éé\né", 1, 2, 9, 3)
	f.Add("a€€\nb", 1, 4, 9, 30)
	f.Add("a€€\nb", 1, 8, 9, 30)
	f.Add("ab\ncd", 2, 3, 1, 9)
	f.Add("ab\ncd", 2, 4, 1, 9)
	f.Add("ab\ncd", 3, 2, 1, 9)
	f.Add("\x80\x80\x80\x80\xe2\x82\n", 1, 3, 1, 9)
	f.Add(strings.Repeat("x", 100)+"\ny\n", 2, 1, 9, 50)
	f.Add(strings.Repeat("x", 100)+"\ny\n", 1, 40, 9, 50)
	f.Add("\xc3\n\xa9\r", 1, 1, 2, 1)
	f.Fuzz(func(t *testing.T, text string, offset, column, limit, budget int) {
		if offset < 1 || column < 1 || limit < 1 || budget < 0 {
			return
		}
		for _, numbered := range []bool{false, true} {
			w := Window{Offset: offset, Column: column, Limit: limit, Budget: min(budget, math.MaxInt32), Numbered: numbered}
			want := plainExcerpt(text, w)
			at := scanText(t, strings.NewReader(text), w, int64(len(text)))
			byByte := scanText(t, iotest.OneByteReader(strings.NewReader(text)), w, 0)
			for name, got := range map[string]Excerpt{"at once": at, "byte by byte": byByte} {
				if diff := cmp.Diff(view(want), view(got)); diff != "" {
					t.Errorf("scan(%q, %+v) %s (-want +got):\n%s", text, w, name, diff)
				}
			}
		}
	})
}

func scanText(t *testing.T, r io.Reader, w Window, size int64) Excerpt {
	t.Helper()
	e, err := Scan(t.Context(), r, w, size, true)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// view is an excerpt that cmp can look into.
func view(e Excerpt) map[string]any {
	return map[string]any{
		"text": string(e.Text), "first": e.First, "last": e.Last, "cut": e.Cut, "lines": e.Lines, "ended": e.Ended, "lf": e.lf, "crlf": e.crlf,
		"next": e.Next, "short": e.Short, "length": e.Length,
	}
}

// A window that is full reads no further, if it need not.
func TestWindowStops(t *testing.T) {
	text := strings.NewReader(strings.Repeat("x\n", 1<<20))
	got, err := Scan(t.Context(), text, Window{Offset: 3, Limit: 2, Budget: 100}, text.Size(), false)
	if err != nil || string(got.Text) != "x\nx\n" || got.Ended || got.Last != 4 {
		t.Errorf("scan = %q, lines %d-%d, ended %v, %v, want two lines of a text that has not ended", got.Text, got.First, got.Last, got.Ended, err)
	}
	if want := int(text.Size()) - chunkSize; text.Len() != want {
		t.Errorf("%d bytes are left to read, want %d", text.Len(), want)
	}
}
