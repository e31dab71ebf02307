package fetch

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A jar is bounded, whatever a server sets.
func TestJarIsBounded(t *testing.T) {
	j, u := NewJar(), &url.URL{Scheme: "https", Host: "example.com", Path: "/"}
	most := 0
	for i := range 400 {
		var set []*http.Cookie
		for k := range 10 {
			c := &http.Cookie{Name: strconv.Itoa(i*10 + k), Value: strings.Repeat("v", 3000)}
			c.Raw = c.String()
			set = append(set, c)
		}
		j.SetCookies(u, set)
		most = max(most, len(cookies(j, u)))
	}
	if most > maxJar || most < maxJar/4 {
		t.Errorf("a request carries %d bytes of cookies, want at most %d", most, maxJar)
	}
	var many []*http.Cookie
	for i := range 2 * maxCookies {
		many = append(many, &http.Cookie{Name: "many" + strconv.Itoa(i), Raw: "x"})
	}
	j = NewJar()
	j.SetCookies(u, many)
	if got := len(j.Cookies(u)); got != maxCookies {
		t.Errorf("%d cookies of one answer are kept, want %d", got, maxCookies)
	}
	j.SetCookies(u, []*http.Cookie{{Name: "large", Value: "x", Raw: strings.Repeat("x", maxCookie+1)}})
	if strings.Contains(cookies(j, u), "large") {
		t.Error("a cookie larger than any is kept")
	}
}

// setCookie sets a cookie as a server does with a header.
func setCookie(t *testing.T, j http.CookieJar, address, header string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	j.SetCookies(u, (&http.Response{Header: http.Header{"Set-Cookie": {header}}}).Cookies())
}

// carried are the cookies that a request to an address carries.
func carried(t *testing.T, j http.CookieJar, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return cookies(j, u)
}

// A site that renews its cookies fills nothing, however often it does.
func TestRenewedCookies(t *testing.T) {
	j := NewJar()
	setCookie(t, j, "https://login.example/", "id=ada")
	for i := range 1000 {
		value := strings.Repeat("v", 1000) + strconv.Itoa(i)
		setCookie(t, j, "https://app.example/a/b", "renewed="+value)
		setCookie(t, j, "https://app.example/a/b", "gone="+value)
		setCookie(t, j, "https://app.example/a/b", "gone=x; Max-Age=0")
		setCookie(t, j, "https://app.example/a/c", fmt.Sprintf("gone=x%d; Path=/a; Expires=Mon, 02 Jan 2006 15:04:05 GMT", i))
		if got := carried(t, j, "https://app.example/a/b"); got != "renewed="+value+";" {
			t.Fatalf("after %d answers a request carries %q", i, got)
		}
	}
	if got := carried(t, j, "https://login.example/"); got != "id=ada;" {
		t.Errorf("the other site has %q", got)
	}
}

// A site that sets more than a jar takes loses what is too much, and no other site
// anything.
func TestFullJar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJar()
		setCookie(t, j, "https://login.example/", "id=ada")
		for i := range 2 * maxJar / 1000 {
			setCookie(t, j, "https://hostile.example/", fmt.Sprintf("c%d=%s; Max-Age=60", i, strings.Repeat("v", 1000)))
		}
		full := carried(t, j, "https://hostile.example/")
		if len(full) > maxJar || len(full) < maxJar/2 {
			t.Errorf("%d bytes are kept, want at most %d", len(full), maxJar)
		}
		setCookie(t, j, "https://late.example/", "late="+strings.Repeat("v", 1000))
		if got := carried(t, j, "https://late.example/"); got != "" {
			t.Errorf("a full jar takes %q", got)
		}
		setCookie(t, j, "https://login.example/", "id=eve")
		if got := carried(t, j, "https://login.example/"); got != "id=eve;" {
			t.Errorf("the other site has %q", got)
		}
		<-time.After(time.Minute) // of the bubble: the cookies expire
		setCookie(t, j, "https://late.example/", "late=soon")
		setCookie(t, j, "https://late.example/", "large="+strings.Repeat("v", 1000))
		if got := carried(t, j, "https://late.example/"); !strings.HasPrefix(got, "late=soon;large=") {
			t.Errorf("when the others have expired there is %q", got)
		}
	})
}

// A cookie that the jar refuses changes no size: not that of the cookie of another
// site that it would replace, nor that of its own.
func TestRefusedCookies(t *testing.T) {
	for _, address := range []string{"https://a.example.com/", "https://127.0.0.1/", "https://[::1]/", "https://[::1]:8443/"} {
		j, ok := NewJar().(*jar)
		if !ok {
			t.Fatal("it is another jar")
		}
		for i := range 2 * maxJar / 1000 {
			setCookie(t, j, address, fmt.Sprintf("c%d=%s; Path=/", i, strings.Repeat("v", 1000)))
			for _, domain := range []string{".", "::1", ".127.0.0.1", "[::1]", "a.example.com.", "com", "\u212a.example.com", "other.example"} {
				setCookie(t, j, address, fmt.Sprintf("c%d=x; Path=/; Domain=%s", i, domain))
				setCookie(t, j, "https://evil.example/", fmt.Sprintf("c%d=x; Path=/; Domain=a.example.com", i))
			}
		}
		if got := len(carried(t, j, address)); got > maxJar {
			t.Errorf("%s: a request carries %d bytes, and %d are counted", address, got, j.size)
		}
		if got := carried(t, j, "https://evil.example/"); got != "" {
			t.Errorf("%s: the other site has %q", address, got)
		}
	}
}
