package process

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestSlowHandshake has a process print its handshake just when its time has passed: that line must not
// keep the process from ending. Otherwise all wait for one another, which synctest reports.
func TestSlowHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := &pluginRunner{&Process{exited: make(chan struct{})}}
		lines := make(chan string)
		returned := make(chan error, 1)
		go func() { // ends before r.exited is closed
			_, err := r.awaitHandshake(ctx, lines)
			go discard(lines) // as Start does
			returned <- err
		}()
		synctest.Wait()
		lines <- "1|1|unix|/run/s|grpc|"
		close(lines)
		close(r.exited)
		if err := <-returned; !errors.Is(err, errSlowHandshake) {
			t.Errorf("awaitHandshake() = %v, want %v", err, errSlowHandshake)
		}
	})
}
