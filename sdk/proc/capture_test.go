package proc

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestRecorderKeepsHeadAndTail compares the recorder with one that keeps everything, for
// output in pieces of various sizes.
func TestRecorderKeepsHeadAndTail(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, budget := range []int{-1, 0, 1, 2, 5, 10, 100, 1000} {
		for _, size := range []int{0, 1, 4, 5, 6, 10, 11, 99, 100, 101, 250, 5000} {
			for range 20 {
				all := make([]byte, size)
				for i := range all {
					all[i] = byte(random.IntN(256))
				}
				r := NewRecorder(tool.ByteSize(budget))
				for rest := all; len(rest) > 0; {
					n := 1 + random.IntN(len(rest))
					if written, err := r.Write(rest[:n]); written != n || err != nil {
						t.Fatalf("Write() = %d, %v", written, err)
					}
					rest = rest[n:]
				}
				checkCapture(t, r.Capture(), all, max(0, budget))
			}
		}
	}
}

func checkCapture(t *testing.T, got Capture, all []byte, budget int) {
	t.Helper()
	want := Capture{Head: all, Total: int64(len(all))}
	if len(all) > budget {
		head := budget * 2 / 5
		want.Head, want.Tail = all[:head], all[len(all)-(budget-head):]
		want.Omitted = int64(len(all) - budget)
	}
	if !bytes.Equal(got.Head, want.Head) || !bytes.Equal(got.Tail, want.Tail) || got.Omitted != want.Omitted || got.Total != want.Total {
		t.Fatalf("%d bytes with a budget of %d: %+v, want %+v", len(all), budget, got, want)
	}
}

func TestCaptureString(t *testing.T) {
	for _, tt := range []struct {
		in   Capture
		want string
	}{
		{Capture{}, ""},
		{Capture{Head: []byte("all"), Total: 3}, "all"},
		{Capture{Head: []byte("he"), Tail: []byte("il"), Omitted: 7, Total: 11}, "he\n[... 7 bytes left out ...]\nil"},
	} {
		if got := tt.in.String(); got != tt.want {
			t.Errorf("%+v.String() = %q, want %q", tt.in, got, tt.want)
		}
	}
}
