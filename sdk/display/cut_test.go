package display_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/display"
)

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		got, want string
	}{
		{"Cut short text", display.Cut("abc", 3), "abc"},
		{"Cut long text", display.Cut("abcd", 3), "abc…"},
		{"Cut a character of two bytes", display.Cut("aäb", 2), "a…"},
		{"Head of bytes", string(display.Head([]byte("aäb"), 2)), "a"},
		{"Head at a boundary", display.Head("aäb", 3), "aä"},
		{"Head of nothing", display.Head("äb", 1), ""},
		{"Head without starts", display.Head(strings.Repeat("\x80", 9), 8), strings.Repeat("\x80", 5)},
		{"Characters", display.Characters("äöü", 2), "äö"},
		{"Characters of short text", display.Characters("äö", 2), "äö"},
		{"Printable", display.Printable("a\x1b\u202eb", 9), "ab"},
		{"Printable of escapes", display.Printable("a\x1b[31mred\n", 100), "a[31mred"},
		{"Printable of invalid text", display.Printable("\xff", 100), "\uFFFD"},
		{"Printable of wide characters", display.Printable(strings.Repeat("é", 60), 100), strings.Repeat("é", 50) + "…"},
		{"Printable of long text", display.Printable("abcd", 3), "abc…"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

func FuzzHead(f *testing.F) {
	f.Add("aäb€c", 4)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 0 {
			return
		}
		got := display.Head(text, most)
		if len(got) > most || !strings.HasPrefix(text, got) || utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("Head(%q, %d) = %q", text, most, got)
		}
		if len(text) > most && len(got) < most-utf8.UTFMax+1 {
			t.Errorf("Head(%q, %d) = %q, which is too short", text, most, got)
		}
	})
}
