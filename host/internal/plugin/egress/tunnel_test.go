package egress_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/sdk/tool"
)

// encrypt makes a TLS handshake in a tunnel, for a server name.
func encrypt(conn net.Conn, name string) (*tls.Conn, error) {
	c := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	return c, c.Handshake()
}

// firstMessage returns the first message of a TLS handshake.
func firstMessage(t *testing.T, name string) []byte {
	t.Helper()
	client, server := net.Pipe()
	done := make(chan struct{})
	go func() { // ends with the pipe
		defer close(done)
		_, _ = encrypt(client, name)
	}()
	buf := make([]byte, 16<<10)
	n, err := server.Read(buf)
	_ = server.Close()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

// TestServerName: a tunnel carries TLS to the server that was asked for, and to no other that shares
// its address.
func TestServerName(t *testing.T) {
	for _, tt := range []struct {
		to, name string
		want     bool
	}{
		{"example.com:443", "example.com", true},
		{"EXAMPLE.com.:443", "example.com", true},
		{"example.com:443", "EXAMPLE.COM", true},
		{"example.com:8443", "example.com", true}, // raw: the entry has a port
		{"example.com:443", "evil.example", false},
		{"example.com:443", "sub.example.com", false},
		{"example.com:443", "", false},
		{"example.com:8443", "evil.example", false},
		{"example.com:8443", "", false},
		{"93.184.215.14:443", "", true},
		{"93.184.215.14:443", "evil.example", false},
		{"93.184.215.14:443", "example.com", false},
	} {
		t.Run(tt.to+" "+tt.name, func(t *testing.T) {
			w := newWorld(t, rules(t, "example.com", "example.com:8443", public))
			w.speak(func(conn net.Conn) {
				server := tls.Server(conn, &tls.Config{Certificates: w.encrypted.TLS.Certificates})
				if request, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
					w.note(request, "")
					_, _ = io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
				}
				_ = server.CloseWrite()
			})
			tunnel, refused := w.tunnel(tt.to)
			if refused != "" {
				t.Fatal(refused)
			}
			conn, err := encrypt(tunnel, tt.name)
			if err == nil {
				_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n")
				_, _ = io.ReadAll(conn)
			}
			_ = tunnel.Close()
			requests, _ := w.arrived()
			if (err == nil) != tt.want || (len(requests) == 1) != tt.want {
				t.Errorf("the handshake's error is %v, and %d requests arrived; want them to be %v", err, len(requests), tt.want)
			}
			c := w.next()
			if c.Refused == tt.want || !tt.want && !strings.Contains(c.Error, "names the server") {
				t.Errorf("the connection is %+v", c)
			}
		})
	}
}

// TestFragmentedHello: the first message of TLS is read whole, however it is cut into segments and
// records.
func TestFragmentedHello(t *testing.T) {
	for _, name := range []string{"example.com", "evil.example"} {
		hello := firstMessage(t, name)
		body := hello[5:]
		var records []byte
		for piece := range slices.Chunk(body, 7) {
			records = append(append(records, hello[0], hello[1], hello[2], 0, byte(len(piece))), piece...)
		}
		for kind, text := range map[string][]byte{"one record": hello, "many records": records} {
			t.Run(name+" in "+kind, func(t *testing.T) {
				w := newWorld(t, rules(t, "example.com"))
				tunnel, refused := w.tunnel("example.com:443")
				if refused != "" {
					t.Fatal(refused)
				}
				for i := range text { // each byte in a segment of its own
					if _, err := tunnel.Write(text[i : i+1]); err != nil {
						break
					}
				}
				answer := make([]byte, 1)
				n, _ := io.ReadFull(tunnel, answer)
				if got := n == 1 && answer[0] == 22; got != (name == "example.com") {
					t.Errorf("the server answered: %v (%d)", got, answer[0])
				}
				_ = tunnel.Close()
				if c := w.next(); c.Refused != (name != "example.com") {
					t.Errorf("the connection is %+v", c)
				}
			})
		}
	}
}

// TestOtherProtocols: on the ports of the web a tunnel carries TLS and HTTP only, unless the entry
// names a port.
func TestOtherProtocols(t *testing.T) {
	hello := firstMessage(t, "example.com")
	for _, tt := range []struct{ name, say, why string }{
		{"SSH", "SSH-2.0-x\r\n", ""},
		{"bytes", "\x00\x01\x02", "only TLS and HTTP"},
		{"SOCKS", "\x05\x01\x00", "only TLS and HTTP"},
		{"TLS in the form of SSL 2", "\x80\x2e\x01\x03\x01", "only TLS and HTTP"},
		{"a handshake of another version", "\x16\x02\x00\x00\x05hello", "valid TLS handshake"},
		{"a record that is too long", "\x16\x03\x01\xff\xff", "valid TLS handshake"},
		{"a message that is too long", "\x16\x03\x01\x00\x04\x01\xff\xff\xff", "valid TLS handshake"},
		{"half a message", string(hello[:40]), "valid TLS handshake"},
		{"another message", "\x16\x03\x01\x00\x04\x02\x00\x00\x00", "valid TLS handshake"},
		{"HTTP/2 by prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "names the host"},
		{"lower case", "get / HTTP/1.1\r\nHost: example.com\r\n\r\n", "only TLS and HTTP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan string, 2)
			w := newWorld(t, rules(t, "example.com", "example.com:7"))
			w.speak(func(conn net.Conn) {
				text, _ := io.ReadAll(conn)
				got <- string(text)
			})
			tunnel, refused := w.tunnel("example.com:443")
			if refused != "" {
				t.Fatal(refused)
			}
			_, _ = io.WriteString(tunnel, tt.say)
			_ = tunnel.CloseWrite()
			_ = tunnel.rest()
			if c := w.next(); tt.why != "" && (!c.Refused || !strings.Contains(c.Error, tt.why)) || c.Sent != 0 {
				t.Errorf("the connection is %+v, want it to be refused before it carries anything", c)
			}
			if tt.say[0] == 22 {
				return // it is judged everywhere
			}
			if tunnel, refused = w.tunnel("example.com:7"); refused != "" {
				t.Fatal(refused)
			}
			_, _ = io.WriteString(tunnel, tt.say)
			_ = tunnel.CloseWrite()
			if text := <-got; text != tt.say {
				t.Errorf("control: %q arrived", text)
			}
		})
	}
}

// TestRequestsInATunnel: plain HTTP in a tunnel goes to the tunnel's host, request by request.
func TestRequestsInATunnel(t *testing.T) {
	w := newWorld(t, rules(t, "example.com"))
	tunnel, refused := w.tunnel("example.com:80")
	if refused != "" {
		t.Fatal(refused)
	}
	for i := range 3 {
		_, _ = io.WriteString(tunnel, "POST /a?x=1;2 HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\n\r\nbody")
		response, err := http.ReadResponse(tunnel.from, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if body, err := io.ReadAll(response.Body); err != nil || string(body) != "hello" {
			t.Errorf("request %d: the answer is %q, %v", i, body, err)
		}
	}
	if live := w.proxy.Live(); len(live) != 1 || live[0].Host != "example.com" || live[0].Sent == 0 {
		t.Errorf("%+v are open, want one", live)
	}
	_ = tunnel.Close()
	c := w.next()
	if requests, _ := w.arrived(); len(requests) != 3 || requests[2].uri != "/a?x=1;2" || requests[2].body != "body" {
		t.Errorf("%+v arrived", requests)
	}
	if c.Error != "" || c.Received < 3*5 || len(w.proxy.Live()) != 0 || w.opened != 1 {
		t.Errorf("the connection is %+v, was opened %d times, and %+v are open when it has ended", c, w.opened, w.proxy.Live())
	}
}

// TestOtherHostInATunnel: a request in a tunnel that names another host, or none, reaches nothing.
func TestOtherHostInATunnel(t *testing.T) {
	const right = "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"
	for _, tt := range []struct{ name, request string }{
		{"another host", "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"},
		{"another port", "GET / HTTP/1.1\r\nHost: example.com:8080\r\n\r\n"},
		{"an absolute URL", "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n"},
		{"an absolute URL of another host", "GET http://evil.example/ HTTP/1.1\r\nHost: example.com\r\n\r\n"},
		{"CONNECT in CONNECT", "CONNECT evil.example:443 HTTP/1.1\r\nHost: example.com\r\n\r\n"},
		{"CONNECT in CONNECT to the same host", "CONNECT example.com:80 HTTP/1.1\r\nHost: example.com:80\r\n\r\n"},
		{"no host", "GET / HTTP/1.0\r\n\r\n"},
		{"two hosts", "GET / HTTP/1.1\r\nHost: example.com\r\nHost: evil.example\r\n\r\n"},
		{"an address", "GET / HTTP/1.1\r\nHost: " + public + "\r\n\r\n"},
		{"the proxy's own tunnel, and TLS in it", "\x16\x03\r\n\r\n"},
	} {
		for _, before := range []string{"", right} {
			t.Run(tt.name+map[bool]string{true: " after another request"}[before != ""], func(t *testing.T) {
				w := newWorld(t, rules(t, "example.com"))
				tunnel, refused := w.tunnel("example.com:80")
				if refused != "" {
					t.Fatal(refused)
				}
				_, _ = io.WriteString(tunnel, before+tt.request)
				_ = tunnel.CloseWrite()
				answer := tunnel.rest()
				c := w.next()
				requests, trapped := w.arrived()
				if want := len(before) / len(right); len(requests) > want || len(trapped) > 0 {
					t.Errorf("%+v and %q arrived", requests, trapped)
				}
				if c.Error == "" && !strings.Contains(answer, " 400 Bad Request") {
					t.Errorf("the answer is %q, and the connection %+v", answer, c)
				}
			})
		}
	}
	w := newWorld(t, rules(t, "example.com")) // the control
	tunnel, _ := w.tunnel("example.com:80")
	_, _ = io.WriteString(tunnel, right)
	if response, err := http.ReadResponse(tunnel.from, nil); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("control: %+v, %v", response, err)
	}
}

// TestHalfClosed: either side may end first, and the other is still heard.
func TestHalfClosed(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		t.Run(map[bool]string{true: "TLS", false: "raw"}[encrypted], func(t *testing.T) {
			w := newWorld(t, rules(t, "example.com:7"))
			w.speak(func(conn net.Conn) {
				text, _ := io.ReadAll(conn) // until the client has ended
				_, _ = conn.Write(text)
			})
			tunnel, refused := w.tunnel("example.com:7")
			if refused != "" {
				t.Fatal(refused)
			}
			say := []byte("raw bytes")
			if encrypted {
				say = firstMessage(t, "example.com")
			}
			_, _ = tunnel.Write(say)
			_ = tunnel.CloseWrite()
			if got := tunnel.rest(); got != string(say) {
				t.Errorf("%q came back, want %q", got, say)
			}
			if c := w.next(); c.Error != "" || c.Sent != int64(len(say)) || c.Received != c.Sent {
				t.Errorf("the connection is %+v", c)
			}
		})
	}
	t.Run("the server ends first", func(t *testing.T) {
		w := newWorld(t, rules(t, "example.com:7"))
		got := make(chan string, 1)
		w.speak(func(conn net.Conn) {
			_, _ = io.WriteString(conn, "220 hello\r\n") // it speaks first
			_ = conn.(*net.TCPConn).CloseWrite()
			text, _ := io.ReadAll(conn)
			got <- string(text)
		})
		tunnel, refused := w.tunnel("example.com:7")
		if refused != "" {
			t.Fatal(refused)
		}
		if text := tunnel.rest(); text != "220 hello\r\n" {
			t.Errorf("the server said %q", text)
		}
		_, _ = io.WriteString(tunnel, "QUIT")
		_ = tunnel.Close()
		if text := <-got; text != "QUIT" {
			t.Errorf("the client said %q", text)
		}
	})
	t.Run("the client says nothing", func(t *testing.T) {
		w := newWorld(t, rules(t, "example.com"))
		tunnel, refused := w.tunnel("example.com:443")
		if refused != "" {
			t.Fatal(refused)
		}
		_ = tunnel.CloseWrite()
		if text := tunnel.rest(); text != "" {
			t.Errorf("%q came", text)
		}
		if c := w.next(); c.Error != "" || c.Sent+c.Received != 0 {
			t.Errorf("the connection is %+v", c)
		}
	})
}

// TestUpgrade: a connection that a server upgrades carries anything, by the proxy and in a tunnel.
func TestUpgrade(t *testing.T) {
	for _, tunneled := range []bool{false, true} {
		t.Run(map[bool]string{true: "in a tunnel", false: "by the proxy"}[tunneled], func(t *testing.T) {
			w := newWorld(t, rules(t, "example.com"))
			w.handle(func(out http.ResponseWriter, _ *http.Request) {
				conn, buffered, err := http.NewResponseController(out).Hijack()
				if err != nil {
					return
				}
				defer func() { _ = conn.Close() }()
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				_, _ = io.Copy(conn, buffered)
			})
			var conn *tunnel
			ask := "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
			if tunneled {
				conn, _ = w.tunnel("example.com:80")
			} else {
				plain := w.connect()
				conn, ask = &tunnel{plain, bufio.NewReader(plain)}, strings.Replace(ask, "/", "http://example.com/", 1)
			}
			_, _ = io.WriteString(conn, ask)
			response, err := http.ReadResponse(conn.from, nil)
			if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("the answer is %+v, %v", response, err)
			}
			const said = "\x00\x01 bytes"
			_, _ = io.WriteString(conn, said)
			got := make([]byte, len(said))
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != said {
				t.Errorf("%q came back, %v", got, err)
			}
			if live := w.proxy.Live(); len(live) != 1 {
				t.Errorf("%+v are open", live)
			}
			_ = conn.Close()
			if c := w.next(); c.Error != "" || c.Sent < int64(len(said)) || c.Received < int64(len(said)) {
				t.Errorf("the connection is %+v", c)
			}
		})
	}
}

// TestMaxBytes ends a connection that carries too much, in either direction, and says so.
func TestMaxBytes(t *testing.T) {
	const limit = 64 * tool.KiB
	for _, tt := range []struct {
		name  string
		size  int // of the answer, or of what is sent
		send  bool
		plain bool // by the proxy, without a tunnel
		ended bool
	}{
		{"received in a tunnel", 1 << 20, false, false, true},
		{"sent in a tunnel", 1 << 20, true, false, true},
		{"received", 1 << 20, false, true, true},
		{"sent", 1 << 20, true, true, true},
		{"control: received in a tunnel", 32 << 10, false, false, false},
		{"control: sent in a tunnel", 32 << 10, true, false, false},
		{"control: received", 32 << 10, false, true, false},
		{"control: sent", 32 << 10, true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rules(t, "example.com", "example.com:7")
			r.MaxBytes = limit
			w := newWorld(t, r)
			arrived := make(chan int64, 1)
			serve := func(conn io.ReadWriter) {
				if !tt.send {
					_, _ = conn.Write(make([]byte, tt.size))
					arrived <- 0
					return
				}
				n, _ := io.Copy(io.Discard, conn)
				arrived <- n
			}
			w.speak(func(conn net.Conn) { serve(conn) })
			w.handle(func(out http.ResponseWriter, r *http.Request) {
				serve(struct {
					io.Reader
					io.Writer
				}{r.Body, out})
			})
			body := ""
			if tt.send {
				body = strings.Repeat("x", tt.size)
			}
			var received int64
			if tt.plain {
				response, err := w.client().Post("http://example.com/", "text/plain", strings.NewReader(body))
				if err == nil {
					received, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
			} else {
				tunnel, refused := w.tunnel("example.com:7")
				if refused != "" {
					t.Fatal(refused)
				}
				_, _ = io.WriteString(tunnel, body)
				_ = tunnel.CloseWrite()
				received, _ = io.Copy(io.Discard, tunnel)
			}
			sent := <-arrived
			c := w.next()
			if most := max(sent, received); most > 2*int64(limit) || (most < int64(tt.size)) != tt.ended {
				t.Errorf("%d bytes arrived, the bound is %v", most, limit)
			}
			if c.Refused != tt.ended || strings.Contains(c.Error, "more than max_bytes (64KiB)") != tt.ended {
				t.Errorf("the connection is %+v", c)
			}
		})
	}
}

// TestConnectionOfAnAnswer: the address that was dialed is told, and the time.
func TestConnectionOfAnAnswer(t *testing.T) {
	w := newWorld(t, rules(t, "example.com"), func(o *egress.Options) {
		opened := o.Opened
		o.Opened = func(c egress.Connection) {
			if c.Duration != 0 || c.Address != "127.0.0.1" || c.Verdict != egress.Allow || c.Rule != `allow "example.com"` || time.Since(c.Opened) < 0 {
				t.Errorf("%+v was opened", c)
			}
			opened(c)
		}
	})
	_ = w.say("CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	if c := w.next(); c.Duration <= 0 || c.Address != "127.0.0.1" || w.opened != 1 {
		t.Errorf("%+v was closed", c)
	}
}
