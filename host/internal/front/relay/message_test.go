package relay_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatIsPassedOn passes on lines that are neither requests nor answers, drops a line that a
// host left unfinished, and refuses lines that are too long.
func TestWhatIsPassedOn(t *testing.T) {
	c := newServed(t)
	h := c.host(t.Context())
	for _, line := range []string{`{"this is not JSON`, `[]`, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`} {
		c.says(line)
		if got := h.hears(); got != line {
			t.Errorf("the host hears %q, want %q", got, line)
		}
	}
	c.says(strings.Repeat("x", 9<<20))
	c.hears(`"id":null`, `"code":-32600`, "the message is longer than 8388608 bytes")
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"text":"` + strings.Repeat("x", 9<<20) + `"}}`,
	} {
		h.says(line)
		if got := c.hears(); got != line {
			t.Errorf("the client hears %d bytes, want the same %d", len(got), len(line))
		}
	}
	h.says(`{"jsonrpc":"2.0","id":4,"resu`)
	h.goes()
	if got := len(c.in); got != 0 {
		t.Errorf("the client has heard %d more lines", got)
	}
}

// TestLateAnswer keeps an answer to a host that has gone from the next one,
// which has asked with the same id.
func TestLateAnswer(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}`
	c := newServed(t)
	first := c.host(t.Context())
	first.says(question)
	late := idOf(t, c.hears("elicitation/create"))
	first.goes()
	next := c.host(t.Context())
	next.says(question)
	id := idOf(t, c.hears("elicitation/create"))
	c.says(answer(late, `{"action":"accept"}`))
	c.says(answer("1", `{"action":"accept"}`)) // of no host
	c.says(answer(id, `{"action":"decline"}`)) // the control: the host's own answer
	if got := next.hears("decline"); idOf(t, got) != "1" {
		t.Errorf("the host hears %s, want its own id", got)
	}
}

// TestQuestionTakenBack names a question of a host to the client as it was asked.
func TestQuestionTakenBack(t *testing.T) {
	c := newServed(t)
	h := c.host(t.Context())
	h.says(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}`)
	asked := idOf(t, c.hears("elicitation/create"))
	h.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"decided"}}`)
	c.hears(`"requestId":`+asked, `"reason":"decided"`)
}

// TestIDs answers requests whose ids a float64 cannot tell apart, and some that
// are written in another way than they were asked with.
func TestIDs(t *testing.T) {
	c := newServed(t)
	h := c.host(t.Context())
	const first, second = "9007199254740992", "9007199254740993"
	for _, id := range []string{first, second, `"` + first + `"`, "7", `"a"`} {
		c.says(request(id, "tools/call"))
		h.hears("tools/call")
	}
	for _, id := range []string{second, "7.0", `"\u0061"`} {
		h.says(answer(id, "{}"))
		c.hears(fmt.Sprintf(`"id":%s,`, id))
	}
	h.goes() // not answered yet
	c.hears(`"id":`+first, "not known")
	c.hears(`"id":"`+first+`"`, "not known")
	c.relay.Close()
	if got := len(c.in); got != 0 {
		t.Errorf("the client has heard %d more lines", got)
	}
}
