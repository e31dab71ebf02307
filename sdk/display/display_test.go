package display_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/display"
)

func TestTypesEscapeWhereTheyAreShown(t *testing.T) {
	t.Parallel()
	const hostile = "a\x1b[2J\nb"
	for _, tt := range []struct{ got, want string }{
		{fmt.Sprint(display.Name(hostile)), `"a\x1b[2J\nb"`},
		{fmt.Sprintf("%s %v", display.Name("plain"), display.Line(hostile)), `plain a\x1b[2J b`},
		{fmt.Sprint([]display.Name{hostile}), `["a\x1b[2J\nb"]`},
		{fmt.Sprint(struct{ Path display.Name }{hostile}), `{"a\x1b[2J\nb"}`},
	} {
		if tt.got != tt.want {
			t.Errorf("shown as %s, want %s", tt.got, tt.want)
		}
	}
	data, err := json.Marshal([]any{display.Name(hostile), display.Line(hostile)})
	if want := `["a\u001b[2J\nb","a\u001b[2J\nb"]`; err != nil || string(data) != want {
		t.Errorf("in JSON %s, %v, want %s", data, err, want)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if got, want := display.Names([]string{"a", "b\n"}), `a, "b\n"`; got != want {
		t.Errorf("Names = %s, want %s", got, want)
	}
	if got, want := display.Names(strings.Split("abcdefghijkl", "")), "a, b, c, d, e, f, g, h, i, j, and 2 more"; got != want {
		t.Errorf("Names = %s, want %s", got, want)
	}
}

func TestPlural(t *testing.T) {
	t.Parallel()
	for want, noun := range map[string]string{"2 files": "file", "2 directories": "directory", "2 processes": "process"} {
		if got := display.Plural(2, noun); got != want {
			t.Errorf("Plural(2, %q) = %s, want %s", noun, got, want)
		}
		if got := display.Plural(1, noun); got != "1 "+noun {
			t.Errorf("Plural(1, %q) = %s", noun, got)
		}
	}
}

func TestTrimPartial(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "aä": "aä", "a\xc3": "a", "a\xe2\x82": "a", "a\xf0\x9f\x98": "a", "a\x80\x80\x80\x80": "a\x80\x80\x80\x80", "a\xff": "a\xff"} {
		if got := display.TrimPartial(text); got != want {
			t.Errorf("TrimPartial(%q) = %q, want %q", text, got, want)
		}
		if got := string(display.TrimPartial([]byte(text))); got != want {
			t.Errorf("TrimPartial of the bytes %q = %q, want %q", text, got, want)
		}
	}
}

func TestJSONSize(t *testing.T) {
	t.Parallel()
	texts := []string{"", "a b", "\u2028\u2029", "\uFFFD", "\xe2\x80", "\u00fc", "\U0001F600", "a\xffb\u2028c\"", "\xed\xa0\x80"}
	for c := range 256 {
		texts = append(texts, string([]byte{byte(c)}))
	}
	for _, text := range texts {
		written, err := json.Marshal(text)
		if got := display.JSONSize(text); err != nil || got != len(written) {
			t.Errorf("display.JSONSize(%q) = %d, want %d of %s, %v", text, got, len(written), written, err)
		}
	}
}

func FuzzJSONSize(f *testing.F) {
	f.Add("a\"\\\n\b\x01<\u2028\xff\uFFFD😀")
	f.Fuzz(func(t *testing.T, text string) {
		data, err := json.Marshal(text)
		if got := display.JSONSize(text); err != nil || got != len(data) {
			t.Errorf("JSONSize(%q) = %d, want %d, %v", text, got, len(data), err)
		}
	})
}
