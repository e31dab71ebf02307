package console

import (
	"strings"
	"testing"
)

func text(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		if p.Changed {
			b.WriteString("[" + p.Text + "]")
			continue
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ removed, added, wantRemoved, wantAdded string }{
		{"-port = 80", "+port = 8080", "-port = [80]", "+port = [8080]"},
		{"-a b c", "+a x c", "-a [b] c", "+a [x] c"},
		{"-same", "+same", "-same[]", "+same[]"},
		{"-one", "+two", "-one", "+two"},
		{"-", "+", "-", "+"},
		{"-grün ist gut", "+grau ist gut", "-[grün] ist gut", "+[grau] ist gut"},
		{"-f(ab)", "+f(abc)", "-f([ab])", "+f([abc])"},
		{"-日本 語", "+日本 人", "-日本 [語]", "+日本 [人]"},
	} {
		before, after := words(tt.removed, tt.added)
		if text(before) != tt.wantRemoved || text(after) != tt.wantAdded {
			t.Errorf("words(%q, %q) = %q, %q, want %q, %q", tt.removed, tt.added, text(before), text(after), tt.wantRemoved, tt.wantAdded)
		}
	}
}

// FuzzWords: the parts of a line are the line.
func FuzzWords(f *testing.F) {
	f.Add("-a b", "+a c")
	f.Add("-\xff\xfe", "+\xff")
	f.Fuzz(func(t *testing.T, removed, added string) {
		before, after := words(removed, added)
		for _, line := range []struct {
			whole string
			parts []part
		}{{removed, before}, {added, after}} {
			var b strings.Builder
			for _, p := range line.parts {
				b.WriteString(p.Text)
			}
			if b.String() != line.whole {
				t.Fatalf("the parts of %q are %q", line.whole, b.String())
			}
		}
	})
}
