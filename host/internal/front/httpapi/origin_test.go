package httpapi

import (
	"errors"
	"testing"
)

// TestOriginIsLookedUpUntilKnown: an error of a look-up passes, and an account that is
// known stays.
func TestOriginIsLookedUpUntilKnown(t *testing.T) {
	looks := 0
	origin := untilKnown(func() (int, error) {
		if looks++; looks < 3 {
			return 0, errors.New("too many open files")
		}
		return 1000 + looks, nil
	})
	for i, want := range []int{0, 0, 1003, 1003} {
		if uid, err := origin(); uid != want || (err == nil) != (want != 0) {
			t.Errorf("look %d: %d, %v; want %d", i+1, uid, err, want)
		}
	}
	if looks != 3 {
		t.Errorf("looked up %d times, want 3", looks)
	}
}
