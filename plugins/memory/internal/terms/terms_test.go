package terms

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestWords(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"What is the?", ""},
		{"Painted paintings", "paint paint"},
		{"She went home; they have gone", "go home go"},
		{"The children's books", "child book"},
		{"Ann's it's we'll don’t", "ann"},
		{"Café naïve ÉCOLE", "cafe naiv ecol"},
		{"ещё Ёлка йод", "ещ елк йод"},
		{"東京都", "東 京 東京 都 京都"},
		{"東京 大阪", "東 京 東京 大 阪 大阪"},
		{"a 東b", "東 b"},
		{"한국어", "한 국 한국 어 국어"},
		{"party 🎉🎉!", "parti 🎉 🎉"},
		{"ﬁle ＦＵＬＬ", "file full"},
		{"gpt4 3.14 2024-05-01", "gpt4 3 14 2024 05 01"},
		{"שלום עולם", "שלום עולם"},
		{"one\x00two\xff three", "one two three"},
		{strings.Repeat("x", 100), strings.Repeat("x", maxWord)},
	} {
		var all []string
		for _, w := range Words(tt.text) {
			all = append(all, w.Term)
		}
		if got := strings.Join(all, " "); got != tt.want {
			t.Errorf("Words(%q) have the terms %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestNear(t *testing.T) {
	for _, tt := range []struct{ word, want string }{
		{"paintign", "paint"}, // swapped
		{"paintng", "paint"},  // left out
		{"pxinting", "paint"}, // changed
		{"paaint", "paint"},   // added
		{"паспрот", "паспорт"},
	} {
		var found []string
		Near(tt.word, func(term string) { found = append(found, term) })
		if !slices.Contains(found, tt.want) {
			t.Errorf("Near(%q) does not find %q", tt.word, tt.want)
		}
	}
	for _, word := range []string{"", "abc", "東京東京", "gpt4x", strings.Repeat("x", 25)} {
		Near(word, func(term string) { t.Fatalf("Near(%q) finds %q, want nothing", word, term) })
	}
}

func TestPassages(t *testing.T) {
	long := strings.Repeat("A sentence of some words. ", 60)
	for _, tt := range []struct {
		name, text string
		want       []int // the ends
	}{
		{"empty", "", []int{0}},
		{"short", "a note", []int{6}},
		{"at sentences", long, []int{988, 1560}},
		{"at a paragraph", strings.Repeat("x", 600) + "\n\n" + strings.Repeat("y", 600), []int{602, 1202}},
		{"without spaces", strings.Repeat("x", 2500), []int{1000, 2000, 2500}},
		{"characters, not bytes", strings.Repeat("é", 1500), []int{2000, 3000}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ends []int
			for _, p := range Passages(tt.text) {
				ends = append(ends, p.Stop)
			}
			if diff := cmp.Diff(tt.want, ends); diff != "" {
				t.Errorf("ends of Passages() (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzTerms(f *testing.F) {
	for _, seed := range []string{"The children's books", "東京都", "ещё 🎉", "\x00\xff", "ﬁ ’s", strings.Repeat("word ", 300)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := Words(text)
		if diff := cmp.Diff(words, Words(text)); diff != "" {
			t.Errorf("the same text gives other words:\n%s", diff)
		}
		for _, w := range words {
			if w.Folded == "" || w.Term == "" || !utf8.ValidString(w.Folded) || !utf8.ValidString(w.Term) {
				t.Errorf("Words(%q) has %q with the term %q", text, w.Folded, w.Term)
			}
		}
		at := 0
		for _, p := range Passages(text) {
			if p.Start != at || p.Stop < p.Start || utf8.RuneCountInString(text[p.Start:p.Stop]) > maxPassage {
				t.Errorf("passage %d to %d after %d", p.Start, p.Stop, at)
			}
			if utf8.ValidString(text) && !utf8.ValidString(text[p.Start:p.Stop]) {
				t.Errorf("a character is cut at %d or %d", p.Start, p.Stop)
			}
			at = p.Stop
		}
		if at != len(text) {
			t.Errorf("the passages end at %d of %d", at, len(text))
		}
	})
}
