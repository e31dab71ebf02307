package egress_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestQuotaOfAllProxies: what a user transfers through one proxy counts in another. A connection ends
// in the middle, and the call learns why the next one is refused; connections besides calls count too.
func TestQuotaOfAllProxies(t *testing.T) {
	quotas := egress.NewQuotas()
	shared := func(o *egress.Options) { o.Quotas = quotas }
	var told []string
	of := func(user string, inCall bool) *causeOf {
		cause := func([]byte) egress.Cause {
			c := egress.Cause{User: user, PerDay: 100 * tool.KiB, None: "no call runs"}
			if inCall {
				c.Call, c.Connect = "c1", connectFunc(func(to tool.Destination, wanted bool) (tool.Permission, *tool.Error) {
					told = append(told, fmt.Sprintf("%s %s %v", to.Host, to.Reason, wanted))
					return tool.Permission{}, nil
				})
			}
			return c
		}
		return &cause
	}
	first, second := newWorld(t, rules(t, "*:7"), shared), newWorld(t, rules(t, "a.example:7"), shared)
	carry := func(w *world, user string, inCall bool, bytes int) (got int, refused string) {
		w.cause.Store(of(user, inCall))
		conn, refused := w.tunnel("a.example:7")
		if refused != "" {
			return 0, refused
		}
		_, _ = conn.Write(make([]byte, bytes))
		_ = conn.CloseWrite()
		all, _ := io.ReadAll(conn)
		return len(all), ""
	}
	if n, refused := carry(first, "ann", true, 40<<10); n != 40<<10 || refused != "" {
		t.Errorf("40 KiB each way: %d, %s", n, refused)
	}
	if c := first.next(); c.Error != "" {
		t.Errorf("the first is %+v", c)
	}
	if n, refused := carry(second, "ann", false, 40<<10); n == 40<<10 || refused != "" {
		t.Errorf("40 KiB more through another proxy, of which 20 are left: %d, %s", n, refused)
	}
	const reason = "the user has transferred 100KiB in a day, which is the quota; there is more in 2"
	if c := second.next(); !c.Refused || !strings.HasPrefix(c.Error, reason) || c.Address == "" {
		t.Errorf("the connection beyond the quota is %+v", c)
	}
	for _, w := range []*world{first, second} {
		if _, refused := carry(w, "ann", true, 1); !strings.Contains(refused, "403 toolhost: "+reason) {
			t.Errorf("without quota: %s", refused)
		}
		if c := w.next(); !c.Refused || c.Address != "" {
			t.Errorf("the refused connection is %+v", c)
		}
	}
	if len(told) != 2 || slices.ContainsFunc(told, func(text string) bool {
		return !strings.HasPrefix(text, "a.example "+reason) || !strings.HasSuffix(text, " false")
	}) {
		t.Errorf("the calls learn %q", told)
	}
	if _, refused := second.tunnel("b.example:7"); !strings.Contains(refused, "not in the list") {
		t.Errorf("a host that is not allowed is refused with %s", refused)
	}
	if n, refused := carry(second, "bob", true, 10<<10); n != 10<<10 || refused != "" {
		t.Errorf("another user: %d, %s", n, refused)
	}
}
