//go:build !race

package fetch

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// A bomb stops at the limit, however it is packed. As a control, the
// same bytes are unpacked without a limit.
func TestBombs(t *testing.T) {
	const size, limit = 32 << 20, 1 << 20
	for _, names := range [][]string{{"gzip"}, {"br"}, {"zstd"}, {"gzip", "gzip"}, {"gzip", "br"}, {"zstd", "zstd"}} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			bomb := packed(t, zeros(size), names...)
			got, err := (&decoder{limit: limit}).decode(t.Context(), bytes.NewReader(bomb), names)
			if !errors.Is(err, errTooLarge) || len(got) != limit {
				t.Errorf("%d bytes became %d: %v; want %d", len(bomb), len(got), err, limit)
			}
			control := &decoder{limit: size}
			if all, err := control.decode(t.Context(), bytes.NewReader(bomb), names); err != nil || len(all) != size {
				t.Errorf("control: %d bytes became %d: %v", len(bomb), len(all), err)
			}
		})
	}
	if got, err := (&decoder{limit: limit}).decode(t.Context(), endless{}, nil); !errors.Is(err, errTooLarge) || len(got) != limit {
		t.Errorf("an endless body became %d bytes: %v", len(got), err)
	}
}
