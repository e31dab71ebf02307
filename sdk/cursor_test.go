package sdk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk"
)

func TestCursor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		at   int64
		of   string
	}{
		{"", 0, ""},
		{"0", 0, ""},
		{"5000", 5000, ""},
		{"12-0123abcd..4567-89", 12, "0123abcd..4567-89"},
		{"0-abc", 0, "abc"},
	} {
		var got sdk.Cursor
		err := got.UnmarshalText([]byte(tt.text))
		if at, of := got.Position(); err != nil || at != tt.at || of != tt.of {
			t.Errorf("the cursor %q is at %d of %q, %v, want %d of %q", tt.text, at, of, err, tt.at, tt.of)
		}
		if again := sdk.CursorAt(tt.at, tt.of); again != got {
			t.Errorf("CursorAt(%d, %q) = %q, want %q", tt.at, tt.of, again, got)
		}
	}
	for _, text := range []string{"-", "-1", "1-", "x", "1.5", "99999999999999999999", "1-a b", "1-a\x1b", "1-ä", "1-" + strings.Repeat("a", 255)} {
		var got sdk.Cursor
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("UnmarshalText(%q) = %q, want an error", text, got)
		}
	}
}

func TestCursorInResults(t *testing.T) {
	t.Parallel()
	type page struct {
		Next sdk.Cursor `json:"next_cursor,omitempty"`
	}
	for next, want := range map[sdk.Cursor][2]string{
		"":   {`{}`, ""},
		"20": {`{"next_cursor":"20"}`, `[more follows; continue with cursor="20"]`},
	} {
		data, err := json.Marshal(page{next})
		if err != nil || string(data) != want[0] || next.Note("") != want[1] {
			t.Errorf("%q is %s, %v and %s, want %s", next, data, err, next.Note(""), want)
		}
	}
	if got, want := sdk.Cursor("3-x").Note("links 1-3 of 9"), `[links 1-3 of 9; continue with cursor="3-x"]`; got != want {
		t.Errorf("Note = %s, want %s", got, want)
	}
}
