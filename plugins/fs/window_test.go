package main

import (
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/dfa"
)

// plainExcerpt is what the window shows, found in the plainest way: with all
// lines at hand.
func plainExcerpt(text string, w window) excerpt {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	crlf := strings.Count(text, "\r\n")
	e := excerpt{
		first: w.offset, last: w.offset - 1, lines: len(lines), ended: true,
		crlf: crlf, lf: strings.Count(text, "\n") - crlf,
	}
	column := max(w.column, 1)
	if i := w.offset - 1; column > 1 && i < len(lines) {
		first := lines[i]
		content := strings.TrimSuffix(first, "\n")
		at := column - 1
		for at > 0 && at < len(content) && !utf8.RuneStart(content[at]) && len(dfa.TrimRune([]byte(content[:at]))) < at {
			at++
		}
		if at > len(content) || at == len(first) {
			e.short, e.length = true, len(content)
			return e
		}
		column = at + 1
		lines[i] = first[at:]
	}
	for i := w.offset - 1; i < len(lines) && e.last-e.first+1 < w.limit; i++ {
		if len(e.text)+len(lines[i]) > w.budget {
			if i == w.offset-1 {
				e.text = dfa.TrimRune([]byte(lines[i][:w.budget]))
				e.last, e.cut, e.next = i+1, true, column+len(e.text)
			}
			break
		}
		e.text = append(e.text, lines[i]...)
		e.last = i + 1
	}
	return e
}

// However the text comes, the window shows what the plain way shows.
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
		w := window{offset: offset, column: column, limit: limit, budget: min(budget, math.MaxInt32)}
		want := plainExcerpt(text, w)
		at := scanText(t, strings.NewReader(text), w, int64(len(text)))
		byByte := scanText(t, iotest.OneByteReader(strings.NewReader(text)), w, 0)
		for name, got := range map[string]excerpt{"at once": at, "byte by byte": byByte} {
			if diff := cmp.Diff(view(want), view(got)); diff != "" {
				t.Errorf("scan(%q, %+v) %s (-want +got):\n%s", text, w, name, diff)
			}
		}
	})
}

func scanText(t *testing.T, r io.Reader, w window, size int64) excerpt {
	t.Helper()
	e, err := scan(t.Context(), r, w, size, true)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// view is an excerpt that cmp can look into.
func view(e excerpt) map[string]any {
	return map[string]any{
		"text": string(e.text), "first": e.first, "last": e.last, "cut": e.cut, "lines": e.lines, "ended": e.ended, "lf": e.lf, "crlf": e.crlf,
		"next": e.next, "short": e.short, "length": e.length,
	}
}

// A window that is full reads no further, if it need not.
func TestWindowStops(t *testing.T) {
	text := strings.NewReader(strings.Repeat("x\n", 1<<20))
	got, err := scan(t.Context(), text, window{offset: 3, limit: 2, budget: 100}, text.Size(), false)
	if err != nil || string(got.text) != "x\nx\n" || got.ended || got.last != 4 {
		t.Errorf("scan = %q, lines %d-%d, ended %v, %v, want two lines of a text that has not ended", got.text, got.first, got.last, got.ended, err)
	}
	if want := int(text.Size()) - chunkSize; text.Len() != want {
		t.Errorf("%d bytes are left to read, want %d", text.Len(), want)
	}
}
