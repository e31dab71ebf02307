//go:build !race

package worker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
	"github.com/toolhost/toolhost/sdk/worker"
)

// A function that loops, uses all memory, crashes or answers too much affects its process only.
func TestLimits(t *testing.T) {
	for _, name := range []string{"loop", "consume", "panic", "long"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got any
			if err := worker.Run(t.Context(), worker.Job{Function: name, Time: time.Second, MaxAnswer: 100 * tool.KiB}, &got); !errors.Is(err, worker.ErrLimit) {
				t.Errorf("Run = %.100v, %v, want %v", got, err, worker.ErrLimit)
			}
		})
	}
}
