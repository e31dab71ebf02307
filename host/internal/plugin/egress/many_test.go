package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestManyConnections keeps as many connections open as a process may have. One more waits until one
// of them ends.
func TestManyConnections(t *testing.T) {
	const most = 1024
	w := newWorld(t, rules(t, "*:7"))
	tunnels := make([]*tunnel, most)
	var opening sync.WaitGroup
	for i := range tunnels {
		opening.Go(func() {
			var refused string
			if tunnels[i], refused = w.tunnel(fmt.Sprintf("host%d.example:7", i)); refused != "" {
				t.Errorf("tunnel %d: %s", i, refused)
			}
			_, _ = fmt.Fprintf(tunnels[i], "%4d", i)
			got := make([]byte, 4)
			if _, err := io.ReadFull(tunnels[i], got); err != nil || string(got) != fmt.Sprintf("%4d", i) {
				t.Errorf("tunnel %d: %q, %v", i, got, err)
			}
		})
	}
	opening.Wait()
	if live := w.proxy.Live(); len(live) != most {
		t.Errorf("%d are open, want %d", len(live), most)
	}
	further := w.connect()
	_, _ = io.WriteString(further, "CONNECT last.example:7 HTTP/1.1\r\nHost: x\r\n\r\n")
	_ = tunnels[0].Close()
	if c := w.next(); c.Host != "host0.example" || c.Sent != 4 || c.Received != 4 {
		t.Errorf("%+v was closed", c)
	}
	if answer := answerOf(further); answer != established {
		t.Errorf("the further one: %q", answer)
	}
	if live := w.proxy.Live(); len(live) != most {
		t.Errorf("%d are open, want %d", len(live), most)
	}
	w.proxy.Close()
	if live := w.proxy.Live(); len(live) != 0 {
		t.Errorf("%d are open when the proxy is closed", len(live))
	}
	for range most {
		if c := w.next(); c.Error != "" {
			t.Errorf("%+v was closed", c)
		}
	}
}

// TestClose closes a proxy with a connection in each of its states. Each is reported, and TestMain
// finds what goes on.
func TestClose(t *testing.T) {
	r := rules(t, "example.com", "slow.example", "never.example", "example.com:7")
	r.Ask = true
	arrived, asked, lookedUp := make(chan struct{}, 8), make(chan struct{}, 1), make(chan struct{}, 2)
	w := newWorld(t, r, func(o *egress.Options) {
		lookup := o.Lookup
		o.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			if host == "never.example" {
				lookedUp <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return lookup(ctx, host)
		}
	})
	of := func([]byte) egress.Cause {
		return egress.Cause{Connect: func(ctx context.Context, _ tool.Destination, _ bool) (tool.Permission, *tool.Error) {
			asked <- struct{}{}
			<-ctx.Done()
			return tool.Permission{}, tool.AsError(context.Cause(ctx))
		}}
	}
	w.cause.Store(&of)
	w.handle(func(out http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // a body that does not end
		}
		if r.Header.Get("Upgrade") != "" {
			conn, _, err := http.NewResponseController(out).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}
			return
		}
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(out, "the first")
			_ = http.NewResponseController(out).Flush()
		}
		<-r.Context().Done()
	})
	flood := make(chan struct{}, 1)
	w.speak(func(conn net.Conn) { // to a client that never reads
		flood <- struct{}{}
		for {
			if _, err := conn.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	begun := 0 // connections that the proxy knows of
	for _, say := range []string{
		"", "GET http://example.com/ HT",
		"GET http://slow.example/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://slow.example/body HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST http://slow.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nthe first",
		"GET http://never.example/ HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT never.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT asked.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://slow.example/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
	} {
		_, _ = io.WriteString(w.connect(), say)
		if strings.HasSuffix(say, "\r\n\r\n") || strings.HasSuffix(say, "the first") {
			begun++
		}
	}
	for _, tt := range []struct{ to, say string }{
		{"example.com:443", ""},
		{"example.com:7", ""},
		{"example.com:443", "\x16\x03\x01"},
		{"example.com:443", string(firstMessage(t, "example.com"))},
		{"example.com:80", "GET / HT"},
		{"example.com:80", "GET /body HTTP/1.1\r\nHost: example.com\r\n\r\n"},
		{"example.com:80", "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"},
	} {
		tunnel, refused := w.tunnel(tt.to)
		if refused != "" {
			t.Fatal(refused)
		}
		begun++
		_, _ = io.WriteString(tunnel, tt.say)
	}
	for range 6 {
		<-arrived
	}
	<-asked
	_, _, _ = <-lookedUp, <-lookedUp, <-flood
	w.proxy.Close()
	w.proxy.Close() // again
	for range begun {
		_ = w.next()
	}
	if live := w.proxy.Live(); len(live) != 0 {
		t.Errorf("%+v are open", live)
	}
	if conn, err := net.Dial("tcp", w.address); err == nil {
		if _, err := bufio.NewReader(conn).ReadByte(); err == nil {
			t.Error("the proxy still answers")
		}
		_ = conn.Close()
	}
}
