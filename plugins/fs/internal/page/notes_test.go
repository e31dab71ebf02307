package page

import "testing"

func TestShortened(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"short", 5, "short"},
		{"abcdefghij", 9, "abc…hij"},
		{"ééééé", 9, "é…é"},
	} {
		if got := Shorten(tt.text, tt.most); got != tt.want {
			t.Errorf("shortened(%q, %d) = %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}
