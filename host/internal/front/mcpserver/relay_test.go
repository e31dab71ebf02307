package mcpserver

import (
	"bufio"
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/front/relay"
)

// TestLeaveIsBounded tells clients that the host is stopping. One reads that and does nothing,
// the other does not read: leave returns.
func TestLeaveIsBounded(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			host, client := net.Pipe()
			defer client.Close()
			defer host.Close()
			left := make(chan struct{})
			go func() { // ends by its own bound
				defer close(left)
				leave(context.WithoutCancel(t.Context()), host, time.Minute, nil)
			}()
			if reads {
				want := relay.Farewell(time.Minute) + "\n"
				if got, err := bufio.NewReader(client).ReadString('\n'); got != want || err != nil {
					t.Errorf("the client hears %q, %v, want %q", got, err, want)
				}
			}
			<-left // otherwise the bubble deadlocks, which fails the test
		})
	}
}
