package display_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/display"
)

func TestVisible(t *testing.T) {
	for _, tt := range []struct{ name, text, visible, inName string }{
		{"nothing", "", "", ""},
		{"plain", "a b/ç-日本-😀.txt", "a b/ç-日本-😀.txt", "a b/ç-日本-😀.txt"},
		{"lines and tabs", "a\n\tb", "a\n\tb", `"a\n\tb"`},
		{"escape sequence", "\x1b[2Ja", `\x1b[2Ja`, `"\x1b[2Ja"`},
		{"carriage return", "a\rb", `a\rb`, `"a\rb"`},
		{"NUL, backspace and delete", "a\x00\b\x7f", `a\x00\x08\x7f`, `"a\x00\b\x7f"`},
		{"C1", "a\u009b2J", `a\u009b2J`, `"a\u009b2J"`},
		{"right to left", "a\u202etxt.exe", `a\u202etxt.exe`, `"a\u202etxt.exe"`},
		{"isolates and marks", "\u2066a\u2069\u200f\u061c", `\u2066a\u2069\u200f\u061c`, `"\u2066a\u2069\u200f\u061c"`},
		{"zero width", "r\u200bm\u200d\ufeff\u2060", `r\u200bm\u200d\ufeff\u2060`, `"r\u200bm\u200d\ufeff\u2060"`},
		{"tags", "a\U000e0041", `a\U000e0041`, `"a\U000e0041"`},
		{"fillers", "a\u3164", `a\u3164`, `"a` + `\u3164"`},
		{"line separators", "a\u2028b\u2029", `a\u2028b\u2029`, `"a\u2028b\u2029"`},
		{"not UTF-8", "a\xffb\xe2\x82", `a\xffb\xe2\x82`, `"a\xffb\xe2\x82"`},
		{"a replacement character", "a\uFFFD", "a\uFFFD", "a\uFFFD"},
		{"what looks like an escape", `a\x1b`, `a\x1b`, `"a\\x1b"`},
		{"a quote", `"a"`, `"a"`, `"\"a\""`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := display.Visible(tt.text); got != tt.visible {
				t.Errorf("Visible(%q) = %s, want %s", tt.text, got, tt.visible)
			}
			if got := display.VisibleName(tt.text); got != tt.inName {
				t.Errorf("VisibleName(%q) = %s, want %s", tt.text, got, tt.inName)
			}
		})
	}
}

func TestVisibleLeavesOrdinaryTextAlone(t *testing.T) {
	text := strings.Repeat("ordinary text, naïve or not\n", 100)
	if n := testing.AllocsPerRun(10, func() { display.Visible(text) }); n > 0 {
		t.Errorf("Visible allocates %v times for ordinary text, want none", n)
	}
}

func FuzzVisible(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b]0;title\a", "a\u202eb", "\xff\xfe", "a\nb\tc\r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		seen := display.Visible(text)
		for _, char := range seen {
			if char != '\n' && char != '\t' && unicode.In(char, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
				t.Fatalf("Visible(%q) = %q, which holds %U", text, seen, char)
			}
		}
		if !utf8.ValidString(seen) || display.Visible(seen) != seen {
			t.Fatalf("Visible(%q) = %q is not visible itself", text, seen)
		}
		name := display.VisibleName(text)
		if strings.ContainsAny(name, "\n\t") || display.Visible(name) != name {
			t.Fatalf("VisibleName(%q) = %q does not keep to its line", text, name)
		}
		if name == text {
			return
		}
		if back, err := strconv.Unquote(name); err != nil || back != text {
			t.Fatalf("VisibleName(%q) = %s, which means %q, %v", text, name, back, err)
		}
	})
}

func ExampleVisible() {
	fmt.Println(display.Visible("invoice\u202efdp.exe \x1b[1mharmless"))
	// Output:
	// invoice\u202efdp.exe \x1b[1mharmless
}
