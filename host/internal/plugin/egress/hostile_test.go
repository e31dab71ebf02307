package egress_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/sdk/proxy"
	"github.com/toolhost/toolhost/sdk/tool"
)

const get = "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n"

// TestHostileRequests sends requests that servers read in different ways. Each is refused, and
// reaches no server. The control of each is the same request without what is wrong with it.
func TestHostileRequests(t *testing.T) {
	const post = "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\n"
	long := strings.Repeat("x", 8<<10)
	for _, tt := range []struct {
		name, hostile, control string
		want                   string // how the answer begins; "" if there is none
	}{
		{"two Host headers", get + "Host: evil.example\r\n\r\n", get + "\r\n", "HTTP/1.1 400"},
		{"no Host header", "GET http://example.com/ HTTP/1.1\r\n\r\n", get + "\r\n", "HTTP/1.1 400"},
		{"a Host header that is none", "GET http://example.com/ HTTP/1.1\r\nHost: a/b\r\n\r\n", get + "\r\n", "HTTP/1.1 400"},
		{"two lengths", post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", post + "Content-Length: 2\r\n\r\nab", "HTTP/1.1 400"},
		{"a length that is none", post + "Content-Length: +2\r\n\r\nab", post + "Content-Length: 2\r\n\r\nab", "HTTP/1.1 400"},
		{"an unknown transfer coding", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", post + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 501"},
		{"two transfer codings", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", post + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 501"},
		{"a space before the colon", get + "X-A : b\r\n\r\n", get + "X-A: b\r\n\r\n", "HTTP/1.1 400"},
		{"a first header that is folded", "GET http://example.com/ HTTP/1.1\r\n X: y\r\nHost: example.com\r\n\r\n", get + "\r\n", "HTTP/1.1 400"},
		{"a NUL in a header", get + "X-A: b\x00c\r\n\r\n", get + "X-A: bc\r\n\r\n", "HTTP/1.1 400"},
		{"an endless header", get + strings.Repeat("X-A: "+long+"\r\n", 10), get + "X-A: " + long + "\r\n\r\n", "HTTP/1.1 431"},
		{"an endless line", get + "X-A: " + strings.Repeat(long, 10), get + "X-A: " + long + "\r\n\r\n", "HTTP/1.1 431"},
		{"an endless request line", "GET http://example.com/" + strings.Repeat(long, 10), "GET http://example.com/" + long + " HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 431"},
		{"HTTP/2 by prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", get + "\r\n", "HTTP/1.1 400"},
		{"HTTP/0.9", "GET http://example.com/\r\n\r\n", get + "\r\n", "HTTP/1.1 400"},
		{"HTTP/3.0", "GET http://example.com/ HTTP/3.0\r\nHost: example.com\r\n\r\n", get + "\r\n", "HTTP/1.1 505"},
		{"a path only", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", get + "\r\n", "HTTP/1.1 400 toolhost: this is a proxy"},
		{"the scheme https", "GET https://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", get + "\r\n", "HTTP/1.1 400 toolhost: this is a proxy"},
		{"the scheme ftp", "GET ftp://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", get + "\r\n", "HTTP/1.1 400 toolhost: this is a proxy"},
		{"a user in the URL", "GET http://example.com@127.0.0.1/ HTTP/1.1\r\nHost: example.com\r\n\r\n", get + "\r\n", "HTTP/1.1 400 toolhost: this is a proxy"},
		{"a zone", "GET http://[fe80::1%25eth0]/ HTTP/1.1\r\nHost: example.com\r\n\r\n", get + "\r\n", "HTTP/1.1 400 toolhost: "},
		{"CONNECT without a port", "CONNECT example.com HTTP/1.1\r\nHost: example.com\r\n\r\n", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 400 toolhost: CONNECT example.com: the port is missing"},
		{"CONNECT to a port that is not listed", "CONNECT example.com:22 HTTP/1.1\r\nHost: example.com\r\n\r\n", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 403 toolhost: no connection to example.com:22: it is not in the list"},
		{"CONNECT to another host than the header names", "CONNECT evil.example:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", "CONNECT example.com:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", "HTTP/1.1 403 toolhost: no connection to evil.example:443"},
		{"a URL of another host than the header names", "GET http://evil.example/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "GET http://example.com/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403 toolhost: no connection to evil.example:80"},
		{"TLS to the proxy", "\x16\x03\x01\x00\x05hello\r\n\r\n", get + "\r\n", "HTTP/1.1 400 Bad Request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, rules(t, "example.com"))
			answer := w.say(tt.hostile)
			if !strings.HasPrefix(answer, tt.want) {
				t.Errorf("the answer is %.200q, want %q", answer, tt.want)
			}
			if requests, trapped := w.arrived(); len(requests)+len(trapped)+len(w.dials()) != 0 {
				t.Errorf("it reached servers: %+v, %q; dialed: %q", requests, trapped, w.dials())
			}
			if answer := w.say(strings.Replace(tt.control, "HTTP/1.1\r\n", "HTTP/1.1\r\nConnection: close\r\n", 1)); !strings.HasPrefix(answer, "HTTP/1.1 200") || len(w.dials()) != 1 {
				t.Errorf("control: the answer is %.200q, and %q were dialed", answer, w.dials())
			}
		})
	}
}

// TestSmuggling: what could be read as one request or as two reaches the server in one way only.
func TestSmuggling(t *testing.T) {
	const inner = "GET /smuggled HTTP/1.1\r\nHost: example.com\r\n\r\n"
	for _, tt := range []struct{ name, text, body string }{
		{"a length and chunks", "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(inner), inner), inner},
		{"chunks and a length", "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" +
			"0\r\n\r\n" + inner, ""},
		{"a body of GET", "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nContent-Length: " +
			fmt.Sprint(len(inner)) + "\r\n\r\n" + inner, inner},
		{"a folded header", get + "Connection: close\r\nX-A: b\r\n Transfer-Encoding: chunked\r\n\r\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, rules(t, "example.com"))
			answer := w.say(tt.text)
			requests, _ := w.arrived()
			if len(requests) > 1 || !strings.HasPrefix(answer, "HTTP/1.1 400") && (len(requests) != 1 || requests[0].uri != "/" || requests[0].body != tt.body) {
				t.Errorf("the server saw %+v, want one request with the body %q: %.100q", requests, tt.body, answer)
			}
			for _, r := range requests {
				if r.header.Get("X-A") != "" && r.header.Get("X-A") != "b Transfer-Encoding: chunked" || len(r.header["Content-Length"]) > 1 {
					t.Errorf("the server saw the headers %v", r.header)
				}
			}
		})
	}
	t.Run("a second request on the connection is decided by itself", func(t *testing.T) {
		w := newWorld(t, rules(t, "example.com"))
		answer := w.say(get + "\r\nGET http://evil.example/ HTTP/1.1\r\nHost: example.com\r\n\r\n")
		if requests, _ := w.arrived(); len(requests) != 1 || !strings.HasPrefix(answer, "HTTP/1.1 200") || !strings.Contains(answer, "HTTP/1.1 403 toolhost: no connection to evil.example:80") {
			t.Errorf("the server saw %d requests, and the answer is %q", len(requests), answer)
		}
	})
}

// TestForwardedRequest: a request of plain HTTP arrives as it was sent, with the host of its URL,
// and without what belongs to the proxy. So does the response.
func TestForwardedRequest(t *testing.T) {
	w := newWorld(t, rules(t, "example.com", "example.com:8080", "93.184.215.14", "[2606:4700::1]"))
	var tickets []string
	of := func(ticket []byte) egress.Cause {
		tickets = append(tickets, string(ticket))
		return egress.Cause{}
	}
	w.cause.Store(&of)
	w.handle(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		out.Header()["Toolhost-Error"] = []string{"I am the proxy"}
		out.Header()["toolhost-hint"] = []string{"trust me"}
		out.Header().Set("X-Server", "y")
		out.WriteHeader(http.StatusForbidden)
		_, _ = out.Write(body)
	})
	credentials := base64.StdEncoding.EncodeToString([]byte(proxy.User + ":" + base64.RawURLEncoding.EncodeToString([]byte("ticket"))))
	answer := w.say("POST http://EXAMPLE.com:80/a%2Fb;c?q=1;2&x=%zz&a=%20+ HTTP/1.1\r\nHost: evil.example\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX-Forwarded-For: 8.8.8.8\r\n" +
		"Proxy-Authorization: Basic " + credentials + "\r\nX-Odd: a\r\nX-Odd: b\r\nAccept-Encoding: br\r\nContent-Length: 4\r\n\r\nbody")
	requests, _ := w.arrived()
	if len(requests) != 1 || len(tickets) != 1 || tickets[0] != "ticket" {
		t.Fatalf("%d requests arrived, with the tickets %q: %s", len(requests), tickets, answer)
	}
	r := requests[0]
	if r.uri != "/a%2Fb;c?q=1;2&x=%zz&a=%20+" || r.host != "example.com" {
		t.Errorf("%s of %s arrived", r.uri, r.host)
	}
	for name, want := range map[string]string{
		"Proxy-Authorization": "", "Proxy-Connection": "", "X-Hop": "", "User-Agent": "", "X-Forwarded-For": "8.8.8.8", "Via": "", "Accept-Encoding": "br", "X-Odd": "a,b",
	} {
		if got := strings.Join(r.header[name], ","); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if !strings.HasPrefix(answer, "HTTP/1.1 403 Forbidden\r\n") || !strings.Contains(answer, "X-Server: y") || !strings.HasSuffix(answer, "\r\n\r\nbody") ||
		strings.Contains(strings.ToLower(answer), "toolhost-") {
		t.Errorf("the answer is %q, want the server's without the proxy's headers", answer)
	}
	if c := w.next(); c.Host != "example.com" || c.Port != 80 || c.Sent == 0 || c.Received == 0 || c.Error != "" || c.Address == "" {
		t.Errorf("the connection is %+v", c)
	}
	w.handle(func(http.ResponseWriter, *http.Request) {})
	for url, want := range map[string]string{
		"http://93.184.215.14/": "93.184.215.14", "http://[2606:4700:0::1]/": "[2606:4700::1]", "http://example.com./": "example.com",
	} {
		_ = w.say("GET " + url + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if requests, _ := w.arrived(); requests[len(requests)-1].host != want {
			t.Errorf("%s arrives with the host %q, want %q", url, requests[len(requests)-1].host, want)
		}
	}
}

// TestRefusedBody: a client that sends a large body to a host that is refused reads why.
func TestRefusedBody(t *testing.T) {
	w := newWorld(t, rules(t, "example.com"))
	for _, url := range []string{"http://evil.example/", "http://example.com/"} { // the second is the control
		conn := w.connect()
		_, _ = io.WriteString(conn, "POST "+url+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 8388608\r\n\r\n")
		_, sent := io.Copy(conn, io.LimitReader(zeros{}, 8<<20))
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		want := http.StatusForbidden
		if strings.Contains(url, "example.com") {
			want = http.StatusOK
		}
		if err != nil || response.StatusCode != want {
			t.Errorf("%s: the answer is %+v, %v, after the body was sent with the error %v", url, response, err, sent)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestTickets: the cause of a connection is found by the ticket in the proxy's credentials, and
// credentials that are none are refused.
func TestTickets(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	for _, tt := range []struct {
		name, header string
		want         string // the ticket; "-" if the proxy wants other credentials
	}{
		{"none", "", ""},
		{"a ticket", "Basic " + encode([]byte("call:"+base64.RawURLEncoding.EncodeToString([]byte("t1")))), "t1"},
		{"another user", "Basic " + encode([]byte("root:"+base64.RawURLEncoding.EncodeToString([]byte("t1")))), "-"},
		{"no password", "Basic " + encode([]byte("call:")), "-"},
		{"no colon", "Basic " + encode([]byte("call")), "-"},
		{"a password that is no ticket", "Basic " + encode([]byte("call:***")), "-"},
		{"no base64", "Basic ***", "-"},
		{"another scheme", "Bearer abc", "-"},
	} {
		for _, ask := range []string{"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n", get} {
			t.Run(tt.name+" "+ask[:4], func(t *testing.T) {
				w := newWorld(t, rules(t, "example.com"))
				got := "-"
				of := func(ticket []byte) egress.Cause {
					got = string(ticket)
					return egress.Cause{}
				}
				w.cause.Store(&of)
				header := ""
				if tt.header != "" {
					header = "Proxy-Authorization: " + tt.header + "\r\n"
				}
				answer := w.say(ask + "Connection: close\r\n" + header + "\r\n")
				w.proxy.Close() // the handler has ended
				if got != tt.want {
					t.Errorf("the ticket is %q, want %q", got, tt.want)
				}
				want := "HTTP/1.1 200"
				if tt.want == "-" {
					want = "HTTP/1.1 407"
				}
				if !strings.HasPrefix(answer, want) || (len(w.dials()) > 0) == (tt.want == "-") {
					t.Errorf("the answer is %q, and %q were dialed", answer, w.dials())
				}
			})
		}
	}
}

// TestPeopleDecide: what people say about an unlisted host holds, and their refusal is what the
// client reads. A denied destination is noted, whatever they say.
func TestPeopleDecide(t *testing.T) {
	yes := func() (tool.Permission, *tool.Error) {
		return tool.Permission{By: "user", Approval: "ap_1", Approver: "bea"}, nil
	}
	no := func() (tool.Permission, *tool.Error) {
		return tool.Permission{}, tool.Errorf(tool.Rejected, "User rejected the connection: not “this”").WithHint("do\r\nsomething else")
	}
	for _, tt := range []struct {
		name, to string
		says     func() (tool.Permission, *tool.Error) // nil: nobody can be asked
		asked    string
		want     string
	}{
		{"allowed", "new.example:443", yes, "new.example:443 true", "HTTP/1.1 200"},
		{"rejected", "new.example:443", no, "new.example:443 true", "HTTP/1.1 403 toolhost: User rejected the connection: not ?this?\r\nToolhost-Error: User rejected the connection: not ?this?\r\nToolhost-Hint: do??something else\r\n"},
		{"nobody can be asked", "new.example:443", nil, "", "HTTP/1.1 403 toolhost: no connection to new.example:443: no call runs\r\nToolhost-Error: no connection to new.example:443: no call runs\r\nToolhost-Hint: add it to network.allow"},
		{"denied", "evil.example:443", yes, "evil.example:443 false", "HTTP/1.1 403 toolhost: no connection to evil.example:443: the configuration denies it"},
		{"private", "10.0.0.1:443", yes, "10.0.0.1:443 false", "HTTP/1.1 403 toolhost: no connection to 10.0.0.1:443: it is a private"},
		{"listed", "example.com:443", no, "", "HTTP/1.1 200"},
		{"allowed, but private", "inside.example:443", yes, "inside.example:443 true", "HTTP/1.1 403 toolhost: inside.example: its address is private"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rules(t, "example.com")
			r.Ask, r.Deny = true, destinations(t, "evil.example")
			w := newWorld(t, r)
			w.names["inside.example"] = [][]string{{"10.0.0.1"}}
			var asked []string
			of := func([]byte) egress.Cause {
				c := egress.Cause{Call: "c1", User: "ann", Session: "s1", None: "no call runs"}
				if tt.says != nil {
					c.Connect = connectFunc(func(to tool.Destination, wanted bool) (tool.Permission, *tool.Error) {
						asked = append(asked, fmt.Sprintf("%s:%d %v", to.Host, to.Port, wanted))
						return tt.says()
					})
				}
				return c
			}
			w.cause.Store(&of)
			answer := w.say("CONNECT " + tt.to + " HTTP/1.1\r\nHost: x\r\n\r\n")
			c := w.next()
			if !strings.HasPrefix(answer, tt.want) || strings.Join(asked, ", ") != tt.asked {
				t.Errorf("the answer is %q, and people were asked about %q", answer, asked)
			}
			refused := !strings.HasPrefix(tt.want, "HTTP/1.1 200")
			if c.Refused != refused || (c.Error != "") != refused || c.Call != "c1" || c.User != "ann" || c.Session != "s1" {
				t.Errorf("the connection is %+v", c)
			}
			if by := c.Approver; (by == "bea") != (tt.asked != "" && strings.HasSuffix(tt.asked, "true") && tt.name != "rejected") {
				t.Errorf("it was approved by %q", by)
			}
		})
	}
}
