package egress_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestAnswerEndsWithItsCall: a connection that a person has allowed for a call ends with the call, so
// that the process cannot go on using it for another; one that the rules allow goes on.
func TestAnswerEndsWithItsCall(t *testing.T) {
	for _, tt := range []struct {
		name string
		r    *egress.Rules
		ends bool
	}{
		{"by a person", &egress.Rules{Ask: true}, true},
		{"by the rules", rules(t, "example.com"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.r)
			call, end := context.WithCancel(t.Context())
			defer end()
			of := func([]byte) egress.Cause {
				return egress.Cause{Call: "c1", User: "ann", Ended: call.Done(), Connect: connectFunc(func(tool.Destination, bool) (tool.Permission, *tool.Error) {
					return tool.Permission{By: "user", Approval: "ap_1"}, nil
				})}
			}
			w.cause.Store(&of)
			tunnel, refused := w.tunnel("example.com:80")
			if refused != "" {
				t.Fatal(refused)
			}
			from := bufio.NewReader(tunnel)
			ask := func() error {
				if _, err := io.WriteString(tunnel, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"); err != nil {
					return err
				}
				answer, err := http.ReadResponse(from, nil)
				if err != nil {
					return err
				}
				_, err = io.ReadAll(answer.Body)
				return err
			}
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			end()
			if tt.ends {
				w.next() // the row of its end
			}
			if err := ask(); (err != nil) != tt.ends {
				t.Errorf("a request after the end of the call: %v", err)
			}
		})
	}
}
