package egress

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
)

// arrivals is a listener whose connections a test makes.
type arrivals chan net.Conn

func (a arrivals) Accept() (net.Conn, error) {
	if conn, ok := <-a; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (a arrivals) Close() error {
	close(a)
	return nil
}

func (a arrivals) Addr() net.Addr { return &net.TCPAddr{} }

// accepted is what an Accept returned.
type accepted struct {
	conn net.Conn
	err  error
}

// accept accepts a connection of a listener, and another one arrives.
func accept(l *limited, from arrivals) <-chan accepted {
	result := make(chan accepted, 1)
	go func() { // ends with a connection, or with the listener
		conn, err := l.Accept()
		result <- accepted{conn, err}
	}()
	client, server := net.Pipe()
	_ = client.Close()
	from <- server
	return result
}

// TestPlaces: proxies share their places. Each takes a quarter at most; one without connections takes
// none; a connection that waits comes when a place is free, or ends with its proxy.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := NewPlaces(8)
		var open []net.Conn
		var sources []arrivals
		proxy := func() (*limited, arrivals) {
			from := make(arrivals, 8)
			sources = append(sources, from)
			return limit(from, 1024, places), from
		}
		waits := func(what string, result <-chan accepted) {
			t.Helper()
			synctest.Wait()
			if len(result) > 0 {
				t.Errorf("%s was accepted", what)
			}
		}
		comes := func(what string, result <-chan accepted) {
			t.Helper()
			synctest.Wait()
			if len(result) == 0 {
				t.Fatalf("%s was not accepted", what)
			}
			got := <-result
			if got.err != nil {
				t.Fatalf("%s: %v", what, got.err)
			}
			open = append(open, got.conn)
		}
		for range 4 {
			l, from := proxy()
			comes("the first of a quarter", accept(l, from))
			comes("the second of a quarter", accept(l, from))
		}
		first, from := proxy()
		fifth := accept(first, from)
		waits("a connection without a place", fifth)
		_ = open[0].Close()
		_ = open[0].Close() // it leaves once
		comes("a connection after another one has ended", fifth)
		further := accept(first, from)
		waits("a further connection", further)
		_ = first.Close()
		synctest.Wait()
		if got := <-further; !errors.Is(got.err, net.ErrClosed) {
			t.Errorf("a proxy that closes accepts %v, %v", got.conn, got.err)
		}
		if len(places.taken) != 8 {
			t.Errorf("%d places are taken, want 8", len(places.taken))
		}
		for _, conn := range open {
			_ = conn.Close()
		}
		if len(places.taken) != 0 {
			t.Errorf("%d places are taken without a connection", len(places.taken))
		}
		last, from := proxy()
		comes("a connection when all have ended", accept(last, from))
		comes("another one", accept(last, from))
		beyond := accept(last, from)
		waits("more than a quarter", beyond)
		_ = open[len(open)-1].Close()
		comes("the next one of the proxy", beyond)
	})
}

// TestHalfOfDescriptors: there are places on every machine.
func TestHalfOfDescriptors(t *testing.T) {
	if got := cap(HalfOfDescriptors().taken); got < 16 || got > 1<<20/2/perConnection {
		t.Errorf("%d places", got)
	}
	if got := (*Places)(nil).share(7); got != 7 {
		t.Errorf("without places, a proxy has %d connections, want 7", got)
	}
}
