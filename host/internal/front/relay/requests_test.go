package relay_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

func request(id, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{}}`, id, method)
}

// TestRequests ends a host while requests of each kind are open. Requests without effects are
// sent again; all others are answered, once.
func TestRequests(t *testing.T) {
	c := newServed(t)
	first := c.host(t.Context())
	again := []string{"tools/list", "ping", "server/discover", "subscriptions/listen"}
	for i, method := range append([]string{"tools/call", "tasks/update"}, again...) {
		c.says(request(fmt.Sprint(i), method))
		first.hears(method)
	}
	first.goes()
	c.hears(`"id":0`, `"code":-32603`, "whether the call had an effect is not known", `"unknown_outcome"`)
	c.hears(`"id":1`, "the host ended before it answered", `"unavailable"`)
	next := c.host(t.Context())
	for i, method := range again {
		next.hears(method)
		next.says(answer(fmt.Sprint(i+2), fmt.Sprintf("%q", method)))
		c.hears(fmt.Sprintf(`"id":%d`, i+2), method)
	}
	next.goes()
	last := c.host(t.Context())
	c.says(request("7", "ping"))
	last.hears("ping") // and nothing before it
	last.says(answer("7", "{}"))
	c.hears(`"id":7`) // nor does this
}

// TestRequestThatEndsHosts is sent to some hosts, and then answered.
func TestRequestThatEndsHosts(t *testing.T) {
	c := newServed(t)
	h := c.host(t.Context())
	c.says(request("1", "tools/list"))
	for range 3 {
		h.hears("tools/list")
		h.goes()
		h = c.host(t.Context())
	}
	c.hears(`"id":1`, "the host ended before it answered")
	c.says(request("2", "ping"))
	h.hears("ping")
}

// TestCallThatNoHostHad sends the call to the next host, since it cannot have had an effect.
func TestCallThatNoHostHad(t *testing.T) {
	c := newServed(t)
	conn, host := newPipe()
	ended := make(chan error, 1)
	go func() { ended <- c.relay.Serve(t.Context(), conn) }() // ends with the host
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"pad":"` + strings.Repeat("x", 100<<10) + `"}}`
	go io.WriteString(c.out, call+"\n") // ends when the relay has read it
	if _, err := host.In.Read(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	_ = host.Close() // a pipe's never fails
	<-ended
	next := c.host(t.Context())
	if got := next.hears("tools/call"); got != call {
		t.Errorf("the next host hears %d bytes, want the call of %d", len(got), len(call))
	}
	next.goes() // and not a third time
	c.hears(`"id":1`, "not known")
}

// TestCanceledIsForgotten answers no request that the client has given up.
func TestCanceledIsForgotten(t *testing.T) {
	c := newServed(t)
	h := c.host(t.Context())
	for _, id := range []string{"1", `"b"`} {
		c.says(request(id, "tools/call"))
		h.hears("tools/call")
	}
	c.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.0}}`)
	h.hears("notifications/cancelled")
	h.goes()
	c.hears(`"id":"b"`)
	c.relay.Close()
	if got := len(c.in); got != 0 {
		t.Errorf("the client has heard %d more lines", got)
	}
}

// TestTooManyRequests refuses one more than fit; when one is answered there is
// room again.
func TestTooManyRequests(t *testing.T) {
	c := newServed(t)
	h := c.host(t.Context())
	for id := range 1000 {
		c.says(request(fmt.Sprint(id), "tools/call"))
		h.hears("tools/call")
	}
	c.says(request(`"more"`, "tools/call"))
	c.hears(`"id":"more"`, "1000 requests are open", `"resource_exhausted"`)
	h.says(answer("5", "{}"))
	c.hears(`"id":5`)
	c.says(request(`"more"`, "tools/call"))
	h.hears(`"more"`)
}

// TestCloseAnswers tells the client which requests will not be answered.
func TestCloseAnswers(t *testing.T) {
	c := newServed(t)
	h := c.host(t.Context())
	c.says(request("1", "tools/list"))
	h.hears("tools/list")
	h.goes()
	c.relay.Close()
	c.hears(`"id":1`, "the host ended before it answered")
}
