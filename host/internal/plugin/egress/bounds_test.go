package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
)

// pipes is a listener in memory, whose time is that of a bubble.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// bubble is a proxy in a bubble of synctest.
type bubble struct {
	proxy  *egress.Proxy
	pipes  pipes
	closed chan egress.Connection
}

func newBubble(t *testing.T, rules *egress.Rules, edit func(*egress.Options)) *bubble {
	t.Helper()
	b := &bubble{pipes: make(pipes), closed: make(chan egress.Connection, 4096)}
	opts := egress.Options{
		Listener: b.pipes, Rules: rules, CauseOf: func([]byte) egress.Cause { return egress.Cause{} },
		Opened: func(egress.Connection) {}, Closed: func(c egress.Connection) { b.closed <- c },
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(public)}, nil
		},
		Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") },
	}
	edit(&opts)
	b.proxy = egress.New(t.Context(), opts)
	return b
}

// connect opens a connection to the proxy.
func (b *bubble) connect() net.Conn {
	client, server := net.Pipe()
	b.pipes <- server
	return client
}

// drip writes a text byte by byte, one each second, until the other side has closed.
func drip(conn net.Conn, text string) {
	for i := range len(text) {
		if _, err := conn.Write([]byte{text[i]}); err != nil {
			return
		}
		<-time.NewTimer(time.Second).C
	}
}

// TestSlowClients: who sends slowly, or nothing, has a bound. All times are those of a bubble.
func TestSlowClients(t *testing.T) {
	request := "GET http://evil.example/ HTTP/1.1\r\nHost: x\r\n"
	const connect = "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n"
	hello := string(firstMessage(t, "example.com"))
	for _, tt := range []struct {
		name    string
		fast    string // sent at once
		slow    string // then sent in drops
		allowed bool   // what would be sent is allowed
		most    time.Duration
	}{
		{"nothing", "", "", false, 10 * time.Second},
		{"a header in drops", "", request + "\r\n", false, 10 * time.Second},
		{"an endless header in drops", request, strings.Repeat("X-A: b\r\n", 100), false, 10 * time.Second},
		{"nothing in a tunnel", connect, "", true, time.Minute},
		{"a TLS handshake in drops", connect, hello, true, 11 * time.Second},
		{"a request in a tunnel in drops", strings.Replace(connect, "443", "80", 1), "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", true, 12 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, rules(t, "example.com"), func(o *egress.Options) {
					o.Dial = func(context.Context, string, string) (net.Conn, error) {
						client, server := net.Pipe()
						go func() { // ends with the pipe
							_, _ = io.Copy(io.Discard, server)
							_ = server.Close()
						}()
						return client, nil
					}
				})
				conn := b.connect()
				start := time.Now()
				over := make(chan time.Duration, 1)
				go func() { // ends when the proxy closes the connection
					_, _ = io.Copy(io.Discard, conn)
					over <- time.Since(start)
				}()
				var dripping sync.WaitGroup
				dripping.Go(func() { // likewise
					_, _ = io.WriteString(conn, tt.fast)
					drip(conn, tt.slow)
				})
				select {
				case took := <-over:
					if took > tt.most {
						t.Errorf("the proxy waited %v, want at most %v", took, tt.most)
					}
				case <-time.NewTimer(time.Hour).C:
					t.Errorf("the proxy still waits")
				}
				b.proxy.Close()
				_ = conn.Close()
				dripping.Wait()
			})
		})
	}
}

// TestIdleClient: a connection without a request ends after a while; the control is that it takes a
// further request before that.
func TestIdleClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := func(conn net.Conn) { // ends with the pipe
			defer func() { _ = conn.Close() }()
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		}
		b := newBubble(t, rules(t, "example.com"), func(o *egress.Options) {
			o.Dial = func(context.Context, string, string) (net.Conn, error) {
				client, conn := net.Pipe()
				go server(conn)
				return client, nil
			}
		})
		conn := b.connect()
		from := bufio.NewReader(conn)
		for range 2 {
			_, _ = io.WriteString(conn, get+"\r\n")
			response, err := http.ReadResponse(from, nil)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Fatalf("the answer is %+v, %v", response, err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			<-time.NewTimer(50 * time.Second).C
		}
		start := time.Now()
		if _, err := from.ReadByte(); !errors.Is(err, io.EOF) || time.Since(start) > time.Minute {
			t.Errorf("the connection ended after %v with %v", time.Since(start), err)
		}
		b.proxy.Close()
	})
}

// TestNamesThatHang: a lookup or a server that does not answer has a bound, and ends with its
// client.
func TestNamesThatHang(t *testing.T) {
	hangs := func(o *egress.Options, started, ended chan<- struct{}) {
		o.Lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
			started <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
			return nil, &net.DNSError{Err: ctx.Err().Error(), Name: "x", IsTimeout: true}
		}
	}
	many := func(o *egress.Options, started, ended chan<- struct{}) {
		dials := 0
		o.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			started <- struct{}{}
			dials = 0
			var all []netip.Addr
			for i := range 100 {
				all = append(all, netip.AddrFrom4([4]byte{8, 8, 4, byte(i)}))
			}
			return all, nil
		}
		o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			dials++
			<-ctx.Done()
			if dials == 1 {
				ended <- struct{}{}
			}
			return nil, ctx.Err()
		}
	}
	for name, with := range map[string]func(*egress.Options, chan<- struct{}, chan<- struct{}){"a lookup": hangs, "all addresses": many} {
		for _, ask := range []string{"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", get + "\r\n"} {
			t.Run(name+" "+ask[:4], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					started, ended := make(chan struct{}, 1), make(chan struct{}, 1)
					b := newBubble(t, rules(t, "example.com"), func(o *egress.Options) { with(o, started, ended) })
					conn := b.connect()
					start := time.Now()
					_, _ = io.WriteString(conn, ask)
					response, err := http.ReadResponse(bufio.NewReader(conn), nil)
					if err != nil || response.StatusCode != http.StatusGatewayTimeout || time.Since(start) > 20*time.Second {
						t.Errorf("after %v the answer is %+v, %v", time.Since(start), response, err)
					}
					<-started
					<-ended
					if c := <-b.closed; c.Error == "" || c.Refused {
						t.Errorf("the connection is %+v", c)
					}
					conn = b.connect()
					_, _ = io.WriteString(conn, ask)
					<-started
					start = time.Now()
					_ = conn.Close()
					if <-ended; time.Since(start) > 0 {
						t.Errorf("it went on for %v after its client had gone", time.Since(start))
					}
					<-b.closed
					b.proxy.Close()
				})
			})
		}
	}
}

// TestPace: a process cannot fill the journal: beyond a burst, its connections wait, and those that
// are refused wait longer.
func TestPace(t *testing.T) {
	for name, tt := range map[string]struct {
		host        string
		burst, more int
		answer      string
		took        time.Duration
	}{
		"allowed": {"example.com", 1024, 300, "HTTP/1.1 502", 15 * time.Second},
		"refused": {"other.example", 64, 100, "HTTP/1.1 403", 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, rules(t, "example.com"), func(*egress.Options) {})
				start := time.Now()
				for i := range tt.burst + tt.more {
					conn := b.connect()
					_, _ = fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: x\r\n\r\n", tt.host)
					if answer := answerOf(conn); !strings.HasPrefix(answer, tt.answer) {
						t.Fatalf("the answer is %q", answer)
					}
					_ = conn.Close()
					if i == tt.burst-1 && time.Since(start) != 0 {
						t.Errorf("the first %d waited %v", tt.burst, time.Since(start))
					}
				}
				if took := time.Since(start).Round(time.Second); took != tt.took {
					t.Errorf("%d more took %v, want %v", tt.more, took, tt.took)
				}
				b.proxy.Close()
			})
		})
	}
}

// silent is a server that takes the end of its input for nothing, and says nothing.
type silent struct{ net.Conn }

// CloseWrite keeps the connection open, as TCP does.
func (silent) CloseWrite() error { return nil }

// TestGoneClientsLeave: a tunnel whose client has gone ends a minute later, although its server neither
// speaks nor closes.
func TestGoneClientsLeave(t *testing.T) {
	for name, said := range map[string]string{"said nothing": "", "said something": "x"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, rules(t, "example.com:7"), func(o *egress.Options) {
					o.Dial = func(context.Context, string, string) (net.Conn, error) {
						ours, theirs := net.Pipe()
						go func() { _, _ = io.Copy(io.Discard, theirs) }() // ends with the proxy
						return silent{ours}, nil
					}
				})
				conn := b.connect()
				_, _ = io.WriteString(conn, "CONNECT example.com:7 HTTP/1.1\r\nHost: x\r\n\r\n")
				if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(conn, said)
				start := time.Now()
				_ = conn.Close()
				<-b.closed
				if took := time.Since(start); took != time.Minute {
					t.Errorf("it ends after %v, want a minute", took)
				}
				b.proxy.Close()
			})
		})
	}
}
