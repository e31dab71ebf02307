package egress_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/sdk/tool"
)

// ssrfCase is an address, and whether a tool may fetch it. The table is that of plugin web.
type ssrfCase struct {
	ID        string     `json:"id"`
	URL       string     `json:"url"`
	Expect    string     `json:"expect"` // allow, deny, error
	Class     string     `json:"cls"`
	Why       string     `json:"why"`
	Resolve   []string   `json:"resolve"`
	Sequence  [][]string `json:"resolve_sequence"`
	Redirects []string   `json:"redirects"`
	Hops      int        `json:"redirect_hops"`
	Behavior  string     `json:"server_behaviour"`
}

// TestCasesSSRF asks the proxy for each address of the table: as a client of HTTP does that follows
// redirects, with the URL in the request line as it is, and by CONNECT to its host. With the rules
// for all public hosts, no way leads to an address that is not public. Each refusal has a control:
// allowed by a person, or for a public host in its place, the request arrives.
func TestCasesSSRF(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "plugins", "web", "testdata", "cases", "ssrf.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Cases []ssrfCase `json:"cases"`
	}
	if err := json.Unmarshal(text, &table); err != nil || len(table.Cases) == 0 {
		t.Fatalf("%d cases: %v", len(table.Cases), err)
	}
	ran, opened, replaced := 0, 0, 0
	for _, c := range table.Cases {
		t.Run(c.ID, func(t *testing.T) {
			ran++
			if c.Expect == "error" {
				c.mustEnd(t)
				return
			}
			for _, way := range []string{"client", "request line", "CONNECT"} {
				w := c.world(t, rules(t, "*"))
				answer := c.ask(w, way)
				requests, trapped := w.arrived()
				if len(trapped) != 0 {
					t.Errorf("%s (%s) by %s reached what is not public: %q", c.URL, c.Why, way, trapped)
				}
				for _, to := range w.dials() {
					if a := netip.MustParseAddrPort(to); a.Port() != 80 && a.Port() != 443 {
						t.Errorf("%s (%s) by %s: %s was dialed", c.URL, c.Why, way, to)
					}
				}
				if c.Expect == "allow" && way == "client" && (answer != "hello" || len(requests) == 0) {
					t.Errorf("%s (%s) is refused: %s", c.URL, c.Why, answer)
				}
			}
			if !c.refused() {
				return
			}
			open := &egress.Rules{Ask: true, Private: true}
			w := c.world(t, open)
			w.allowing()
			_ = c.ask(w, "CONNECT")
			if len(w.dials()) > 0 {
				opened++
				return
			}
			u, err := url.Parse(c.URL)
			if err != nil {
				return // no client could ask
			}
			c.URL, c.Resolve = strings.Replace(c.URL, u.Host, "example.com", 1), nil
			replaced++
			w = c.world(t, open)
			w.allowing()
			if answer := c.ask(w, "CONNECT"); len(w.dials()) == 0 {
				t.Errorf("control: nothing is dialed for %s either, so that the case proves nothing: %s", c.URL, answer)
			}
		})
	}
	if ran != len(table.Cases) || opened < 20 || replaced < 5 {
		t.Errorf("%d of %d cases ran, with %d controls by a person and %d by another host", ran, len(table.Cases), opened, replaced)
	}
}

// refused reports whether the proxy must refuse a case for its host or its port.
func (c ssrfCase) refused() bool {
	return c.Expect == "deny" && (slices.Contains([]string{"ipv4", "ipv6", "hostname", "dns"}, c.Class) || strings.HasSuffix(c.Why, " port"))
}

// world resolves the names of a case as the case says; names that look like numbers as some
// resolvers read them.
func (c ssrfCase) world(t *testing.T, rules *egress.Rules) *world {
	t.Helper()
	w := newWorld(t, rules)
	if u, err := url.Parse(c.URL); err == nil && u.Hostname() != "" && u.Hostname() != "example.com" {
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		switch {
		case c.Sequence != nil:
			// The answer that leads inside comes with the first look-up too.
			w.names[host] = [][]string{slices.Concat(c.Sequence[1:]...)}
		case c.Resolve != nil:
			w.names[host] = [][]string{c.Resolve}
		default:
			w.names[host] = [][]string{{"127.0.0.1"}}
		}
	}
	w.handle(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" && len(c.Redirects) > 0 {
			http.Redirect(out, r, c.Redirects[0], http.StatusFound)
			return
		}
		_, _ = io.WriteString(out, "hello")
	})
	return w
}

// ask asks for the URL of a case and returns the answer.
func (c ssrfCase) ask(w *world, way string) string {
	w.t.Helper()
	u, err := url.Parse(c.URL)
	switch {
	case way == "request line":
		return w.say("GET " + c.URL + " HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
	case way == "CONNECT":
		if err != nil || u.Host == "" {
			return ""
		}
		to := u.Host
		if u.Port() == "" {
			to += map[bool]string{true: ":443", false: ":80"}[u.Scheme == "https"]
		}
		tunnel, refused := w.tunnel(to)
		if refused == "" {
			_, _ = io.WriteString(tunnel, "GET / HTTP/1.1\r\nHost: "+u.Host+"\r\nConnection: close\r\n\r\n")
			_ = tunnel.CloseWrite()
			return tunnel.rest()
		}
		return refused
	case err != nil:
		return err.Error()
	}
	response, err := w.client().Get(c.URL)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	return string(body)
}

// mustEnd fetches from a server that does not end well: the connection ends by its bound, or with
// the client.
func (c ssrfCase) mustEnd(t *testing.T) {
	t.Helper()
	for _, scheme := range []string{"http", "https"} {
		r := rules(t, "*", "*:8080")
		r.MaxBytes = 4 * tool.MiB
		w := newWorld(t, r)
		gone := make(chan struct{}, 1)
		w.handle(func(out http.ResponseWriter, r *http.Request) {
			defer func() { gone <- struct{}{} }()
			piece := make([]byte, 64<<10)
			for {
				if c.Behavior == "slowloris" {
					piece = piece[:1]
				}
				if _, err := out.Write(piece); err != nil {
					return
				}
				_ = http.NewResponseController(out).Flush()
				if c.Behavior == "slowloris" {
					<-r.Context().Done()
					return
				}
			}
		})
		w.speak(func(conn net.Conn) { // a server whose chunk has a huge extension
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;")
			for {
				if _, err := conn.Write(make([]byte, 64<<10)); err != nil {
					gone <- struct{}{}
					return
				}
			}
		})
		target := scheme + "://example.com/"
		if c.Behavior == "chunk-ext" {
			target = "http://example.com:8080/"
		}
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := w.client().Do(request)
		if err != nil && c.Behavior == "chunk-ext" {
			response, err = &http.Response{Body: http.NoBody}, nil // without a first byte there is no response
			target = ""
		}
		if err != nil {
			t.Fatalf("%s: %v", c.Why, err)
		}
		if c.Behavior == "slowloris" { // a client has its own patience
			cancel()
		}
		n, err := io.Copy(io.Discard, response.Body)
		if err == nil && target != "" || n > int64(r.MaxBytes)+1<<20 {
			t.Errorf("%s over %s: %d bytes arrived, with the error %v", c.Why, scheme, n, err)
		}
		cancel()
		_ = response.Body.Close()
		patient, done := context.WithTimeout(t.Context(), patience)
		defer done()
		select {
		case <-gone:
		case <-patient.Done():
			t.Fatalf("%s over %s: the server's connection stays open", c.Why, scheme)
		}
	}
}

// TestRebinding: a name is looked up once, and the address that was checked is dialed, whatever the
// name leads to by then.
func TestRebinding(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers [][]string
		want    []string // that are dialed
	}{
		{"public, then private", [][]string{{public}, {"127.0.0.1"}}, []string{public + ":80"}},
		{"private, then public", [][]string{{"127.0.0.1"}, {public}}, nil},
		{"both at once", [][]string{{"10.0.0.1", public, "::1"}}, []string{public + ":80"}},
		{"private in the form of IPv6", [][]string{{"::ffff:10.0.0.1"}}, nil},
		{"translated", [][]string{{"64:ff9b::7f00:1", "2002:7f00:1::"}}, nil},
		{"metadata", [][]string{{"169.254.169.254"}}, nil},
		{"denied by its network", [][]string{{"8.8.8.8"}}, nil},
	} {
		for _, way := range []string{"GET http://flip.example/ HTTP/1.1\r\nHost: flip.example\r\nConnection: close\r\n\r\n", "CONNECT flip.example:80 HTTP/1.1\r\nHost: flip.example:80\r\n\r\n"} {
			t.Run(tt.name+" "+way[:4], func(t *testing.T) {
				r := rules(t, "flip.example")
				r.Deny = destinations(t, "8.8.0.0/16")
				w := newWorld(t, r)
				w.names["flip.example"] = tt.answers
				answer := w.say(way)
				if got := w.dials(); !slices.Equal(got, tt.want) || w.lookups["flip.example"] != 1 {
					t.Errorf("%q were dialed after %d look-ups, want %q: %s", got, w.lookups["flip.example"], tt.want, answer)
				}
				if _, trapped := w.arrived(); len(trapped) != 0 {
					t.Errorf("the trap got %q", trapped)
				}
				c := w.next()
				if tt.want == nil && (!strings.HasPrefix(answer, "HTTP/1.1 403 toolhost: ") || !c.Refused || strings.Contains(answer, tt.answers[0][0])) {
					t.Errorf("the answer is %q, and the connection %+v, want a refusal without the address", answer, c)
				}
			})
		}
	}
}

// TestAllowedAddresses: a private address is dialed if the list has it, also behind a name of the
// list, but not because of an entry for another port or for all public hosts.
func TestAllowedAddresses(t *testing.T) {
	for _, tt := range []struct {
		allow, to string
		private   bool
		want      bool
	}{
		{"db.internal", "db.internal:80", false, false},
		{"db.internal 10.1.2.0/24", "db.internal:80", false, true},
		{"db.internal 10.1.2.0/24:5432", "db.internal:80", false, false},
		{"db.internal:5432 10.1.2.0/24:5432", "db.internal:5432", false, true},
		{"db.internal *", "db.internal:80", false, false},
		{"db.internal", "db.internal:80", true, true},
		{"10.1.2.3", "10.1.2.3:80", false, true},
		{"10.1.2.3", "10.1.2.4:80", false, false},
	} {
		t.Run(tt.allow+" "+tt.to, func(t *testing.T) {
			r := rules(t, strings.Fields(tt.allow)...)
			r.Private = tt.private
			w := newWorld(t, r)
			w.names["db.internal"] = [][]string{{"10.1.2.3"}}
			answer := w.say("CONNECT " + tt.to + " HTTP/1.1\r\nHost: " + tt.to + "\r\n\r\n")
			if got := len(w.dials()) > 0; got != tt.want {
				t.Errorf("dialed: %v, want %v: %s", got, tt.want, answer)
			}
		})
	}
}

// TestDialFails: the client is told what failed.
func TestDialFails(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{syscall.ECONNREFUSED, "HTTP/1.1 502 toolhost: dial: connection refused\r\nToolhost-Error: dial: connection refused\r\nToolhost-Failure: connection_refused\r\n"},
		{os.ErrDeadlineExceeded, "HTTP/1.1 504 toolhost: dial: i/o timeout\r\nToolhost-Error: dial: i/o timeout\r\nToolhost-Failure: timed_out\r\n"},
		{syscall.EHOSTUNREACH, "HTTP/1.1 502 toolhost: dial: no route to host\r\nToolhost-Error: dial: no route to host\r\nContent-Type: "},
	} {
		w := newWorld(t, rules(t, "*"), func(o *egress.Options) {
			o.Dial = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: tt.err}
			}
		})
		if answer := w.say("CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(answer, tt.want) {
			t.Errorf("%v: the answer is %q, want %q", tt.err, answer, tt.want)
		}
	}
}

// TestLookupFails: a name without addresses is no refusal, and the client is told.
func TestLookupFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"no such host", nil, "HTTP/1.1 502 toolhost: lookup none.example: no such host"},
		{
			"no such host, says a resolver",
			&net.DNSError{Err: "no such host", Name: "none.example.", Server: "10.0.0.1:53", IsNotFound: true},
			"HTTP/1.1 502 toolhost: lookup none.example: no such host\r\nToolhost-Error: lookup none.example: no such host\r\nToolhost-Failure: unknown_host\r\n",
		},
		{
			"a broken resolver", &net.DNSError{Err: "read udp 10.0.0.2:53211->10.0.0.1:53: i/o error", Name: "none.example", Server: "10.0.0.1:53"},
			"HTTP/1.1 502 toolhost: lookup none.example: the look-up failed\r\nToolhost-Error: lookup none.example: the look-up failed\r\nToolhost-Failure: lookup_failed\r\n",
		},
		{
			"time-out", &net.DNSError{Err: "read udp 10.0.0.2:53211->10.0.0.1:53: i/o timeout", Name: "none.example", IsTimeout: true},
			"HTTP/1.1 504 toolhost: lookup none.example: the look-up timed out\r\nToolhost-Error: lookup none.example: the look-up timed out\r\nToolhost-Failure: lookup_failed\r\n",
		},
		{"a text that is no line", errors.New("x\r\nSet-Cookie: a=b\r\n\r\ny"), "HTTP/1.1 502 toolhost: x??Set-Cookie: a=b????y\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, rules(t, "*"), func(o *egress.Options) {
				o.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, tt.err }
			})
			for _, ask := range []string{"GET http://none.example/ HTTP/1.1\r\nHost: none.example\r\n\r\n", "CONNECT none.example:443 HTTP/1.1\r\nHost: x\r\n\r\n"} {
				if answer := w.say(ask); !strings.HasPrefix(answer, tt.want) || strings.Contains(answer, "10.0.0.") {
					t.Errorf("%.4s: the answer is %q, want %q", ask, answer, tt.want)
				}
				if c := w.next(); c.Refused || c.Error == "" || c.Address != "" {
					t.Errorf("the connection is %+v, want an error that is no refusal", c)
				}
			}
		})
	}
}
