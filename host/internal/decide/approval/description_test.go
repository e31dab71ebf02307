package approval_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
)

// TestDescriptionIsShort keeps the first sentence of a tool's description, within a bound.
func TestDescriptionIsShort(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	for i, tt := range []struct{ text, want string }{
		{"", ""},
		{"Writes a file. Use it to\nreplace files.", "Writes a file"},
		{"Writes\n  a.txt.", "Writes a.txt"},
		{"bad \xff text", "bad \uFFFD text"},
		{strings.Repeat("x", 1000), strings.Repeat("x", 293) + "… [cut]"},
	} {
		q := question(fmt.Sprintf(`{"n":%d}`, i))
		q.Description = tt.text
		if got := r.ask(t, q).Description; got != tt.want {
			t.Errorf("the record of %q says %q, want %q", tt.text, got, tt.want)
		}
	}
}
