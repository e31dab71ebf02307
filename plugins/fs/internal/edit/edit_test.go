package edit

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Where the indentation of the new text is not clear, nothing is written; where it
// is, tabs and spaces are not mixed.
func TestIndentationIsLearned(t *testing.T) {
	for _, tt := range []struct{ name, text, old, replaced, want string }{
		{"tabs for 2 spaces", "\tif x:\n\t\treturn 1\n", "  if x:\n    return 1\n", "  if x:\n    if y:\n      return 2\n", "\tif x:\n\t\tif y:\n\t\t\treturn 2\n"},
		{"tabs for nothing", "\tif x:\n", "if x:\n\n", "if x:\n    if y:\n        return 2\n", ""},
		{"tabs for 4 spaces", "\tif x:\n", "if x: ", "if x:\n    if y:\n        return 2", "\tif x:\n\t\tif y:\n\t\t\treturn 2\n"},
		{"3 spaces and then 2", "\tif x:\n", "if x: ", "if x:\n   if y:\n     return 2", ""},
		{"8 spaces may be two steps", "\tif x:\n", "if x: ", "if x:\n        return 2", ""},
		{"aligned with what tabs cannot", "\tf(a,\n\t\tb)\n", "f(a,\n  b)\n", "f(a,\n  b,\n   c)\n", ""},
		{"4 spaces for a tab", "def f():\n    if x:\n        y\n", "\tif x: \n", "\tif x:\n\t\tz\n", "def f():\n    if x:\n        z\n        y\n"},
		{"how many spaces is not clear", "\u00a0if x:\n   y\n", "\ty\n", "\ty\n\t\tz\n", ""},
		{"spaces for spaces", "    if x:\n", "if x: ", "if x:\n  y\n   z", "    if x:\n      y\n       z\n"},
		{"4 spaces for 2", "    if x:\n        y\n", "  if x:\n    y\n", "  if x:\n    if y:\n      z\n", "    if x:\n        if y:\n            z\n"},
		{"less than known", "\t\ty\n", "    y\n", "    y\n  z\nw\n", "\t\ty\n\tz\nw\n"},
		{"less than nothing", "  y\n", "    y\n", "    y\nz\n", ""},
		{"tabs and spaces in the new text", "\ty\n", "  y\n", "  y\n\tz\n", ""},
		{"a file with both", "\tx\n  z\ny\n", "  y\n", "  y\n    w\n", ""},
		{"as the file elsewhere", "\tx\ny\n", "  y\n", "  y\n    w\n", "\tx\ny\n\tw\n"},
		{"two for the same", "\ty\n\tz\n", "  y\n    z\n", "  y\n      w\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, done, err := Replacement{Old: tt.old, New: tt.replaced}.Apply("f", tt.text)
			if got != tt.want || (tt.want == "") != (err != nil) || err == nil && done.How != despiteIndentation {
				t.Errorf("apply = %q, %v, %v, want %q", got, done, err, tt.want)
			}
			if told := tool.AsError(err); err != nil && (told.Code != tool.NotFound || !strings.Contains(told.Hint, "the nearest is at lines ")) {
				t.Errorf("the error is %v, hint %q", told, told.Hint)
			}
		})
	}
}

// Lines keep their own line ends even if the replacement has others.
func TestEachLineKeepsItsEnd(t *testing.T) {
	for _, tt := range []struct{ text, old, replaced, want string }{
		{"a\r\nb\n", "a\nb", "x\nb", "x\r\nb\n"},
		{"a\r\nb\n", "a\nb\n", "a\ny\n", "a\r\ny\n"},
		{"a\nb\r\nc\n", "a\nb\nc\n", "a\nc\n", "a\nc\n"},
		{"a\r\nb\nc\r\n", "a\nb\nc\n", "a\nx\ny\nc\n", "a\r\nx\ny\nc\r\n"},
		{"a\r\nb\nc", "a\nb\nc", "0\na\nb\nc", "0\r\na\r\nb\nc"},
		{"a\r\nb \n", "a\nb\n", "x\ny\n", "x\r\ny\n"},
		{"  a\r\n  b\n", "a\nb\n", "x\ny\n", "  x\r\n  y\n"},
		{"a\r\nb\n", "a\nb", "x\r\ny", "x\r\ny\n"},
		{"a\r\nb\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\n"},
	} {
		got, _, err := Replacement{Old: tt.old, New: tt.replaced}.Apply("f", tt.text)
		if got != tt.want || err != nil {
			t.Errorf("%q with %q for %q is %q, %v, want %q", tt.text, tt.replaced, tt.old, got, err, tt.want)
		}
	}
}
