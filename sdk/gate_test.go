package sdk

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestDrainCall waits for one call while others run, and for a call that was sent again before
// its first attempt ended.
func TestDrainCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		g.configured()
		for _, id := range []string{"a", "a", "b"} {
			if err := g.enter(id); err != nil {
				t.Fatal(err)
			}
		}
		drained := make(chan error, 1)
		go func() { drained <- g.drainCall(t.Context(), "a") }() // ends when both have left
		for range 2 {
			synctest.Wait()
			select {
			case err := <-drained:
				t.Fatalf("drainCall returned %v while the call runs", err)
			default:
			}
			g.leave("a")
		}
		if err := <-drained; err != nil {
			t.Errorf("drainCall = %v", err)
		}
		if err := g.drainCall(t.Context(), "never seen"); err != nil {
			t.Errorf("drainCall of an unknown call = %v, want nil", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.drainCall(ctx, "b"); !errors.Is(err, context.Canceled) {
			t.Errorf("drainCall of a call that runs = %v, want the end of the context", err)
		}
		if err := g.enter("c"); err != nil {
			t.Errorf("after drainCall a call is refused: %v", err)
		}
	})
}
