package main

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	var b backoff
	now := time.Unix(1_000_000, 0)
	for i, want := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
		if b.failed(now); b.wait(now) != want {
			t.Errorf("after %d failures the pause is %v, want %v", i+1, b.wait(now), want)
		}
	}
	if got := b.wait(now.Add(59 * time.Second)); got != time.Second {
		t.Errorf("a second before its end the pause is %v", got)
	}
	if b.works(); b.wait(now) != 0 {
		t.Errorf("after a success the pause is %v", b.wait(now))
	}
}
