package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// A token that is revoked while the body of a request arrives does not count for it.
func TestRevokedWhileTheBodyArrives(t *testing.T) {
	for _, revoked := range []bool{false, true} {
		h := httpapitest.Start(t, httpapitest.Options{})
		secret, sum := auth.NewToken()
		list := append(h.TokenList, auth.Token{Name: "late", SHA256: sum, User: httpapitest.Ann, Roles: auth.Agent})
		if err := h.Tokens.Replace(list); err != nil {
			t.Fatal(err)
		}
		address := strings.TrimPrefix(h.URL, "http://")
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const body = `{"tool":"look"}`
		fmt.Fprintf(conn, "POST /v1/calls HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
			address, secret, len(body))
		from := bufio.NewReader(conn)
		for range 2 { // 100 Continue: the body is being read
			if _, err := from.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		want := http.StatusOK
		if revoked {
			want = http.StatusUnauthorized
			if err := h.Tokens.Replace(list, auth.Revocation{Name: "late", SHA256: sum, At: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.WriteString(conn, body); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != want {
			t.Errorf("revoked %v: status %d, want %d", revoked, response.StatusCode, want)
		}
	}
}
