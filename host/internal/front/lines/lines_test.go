package lines_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/front/lines"
)

func TestNext(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"lines", "a\nb\r\n\nc\n", []string{"a", "b", "", "c"}},
		{"the last without its end", "a\nb", []string{"a", "b"}},
		{"none", "", nil},
		{"longer than the buffer", long[:100<<10] + "\na\n", []string{long[:100<<10], "a"}},
		{"too long", "a\n" + long + "\nb\n", []string{"a", "too long", "b"}},
		{"too long by its end", long[:128<<10] + "\nb\n", []string{"too long", "b"}},
		{"too long at the end", "a\n" + long, []string{"a", "too long"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			r := lines.NewReader(iotest.HalfReader(strings.NewReader(tt.in)), 128<<10)
			for {
				line, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if errors.Is(err, lines.ErrTooLong) {
					line = []byte("too long")
				} else if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(line))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNextFails returns the data that was read before the input failed, and then the error.
func TestNextFails(t *testing.T) {
	broken := errors.New("broken")
	r := lines.NewReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 10)
	for _, want := range []string{"a", "b"} {
		if line, err := r.Next(); string(line) != want || err != nil {
			t.Errorf("Next() = %q, %v, want %q", line, err, want)
		}
	}
	if line, err := r.Next(); !errors.Is(err, broken) {
		t.Errorf("Next() = %q, %v, want %v", line, err, broken)
	}
}
