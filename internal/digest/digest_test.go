package digest_test

import (
	"testing"

	"github.com/toolhost/toolhost/internal/digest"
)

// TestOf takes the first example of FIPS 180-4, "abc".
func TestOf(t *testing.T) {
	t.Parallel()
	const want = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got := digest.Of("abc"); got != want {
		t.Errorf("Of(abc) = %s, want %s", got, want)
	}
	if got := digest.Of([]byte("abc")); got != want {
		t.Errorf("Of([]byte(abc)) = %s, want %s", got, want)
	}
}
