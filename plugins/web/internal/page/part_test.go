package page

import (
	"strings"
	"testing"
)

func TestPart(t *testing.T) {
	text := strings.Repeat("ä€😀", 3) // 2, 3 and 4 bytes
	for _, tt := range []struct {
		text string
		part Part
		want string
		end  int
	}{
		{text, Part{}, text, 9},
		{"", Part{}, "", 0},
		{"", Part{Length: 5, Bytes: 5}, "", 0},
		{text, Part{Length: 2}, "ä€", 2},
		{text, Part{Start: 1, Length: 3}, "€😀ä", 4},
		{text, Part{Start: 8}, "😀", 9},
		{text, Part{Start: 8, Length: 100, Bytes: 100}, "😀", 9},
		{text, Part{Bytes: 5}, "ä€", 2},
		{text, Part{Bytes: 6}, "ä€", 2},
		{text, Part{Bytes: 9}, "ä€😀", 3},
		{text, Part{Start: 2, Bytes: 1}, "😀", 3}, // there is always one
		{text, Part{Start: 6, Bytes: 8}, "ä€", 8},
		{text, Part{Bytes: 27}, text, 9},
	} {
		got, end, total, err := tt.part.of(tt.text)
		if err != nil || got != tt.want || end != tt.end || total != strings.Count(tt.text, "")-1 {
			t.Errorf("%+v of %q is %q to %d of %d, %v; want %q to %d", tt.part, tt.text, got, end, total, err, tt.want, tt.end)
		}
	}
	for _, start := range []int{9, 100} {
		if part, _, _, err := (Part{Start: start}).of(text); err == nil {
			t.Errorf("from %d on there is %q", start, part)
		}
	}
}
