package fetch

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"

	"golang.org/x/net/publicsuffix"
)

const (
	// maxCookie bounds the bytes of a cookie, as browsers do.
	maxCookie = 4 << 10
	// maxCookies bounds the number of cookies that are kept, and maxCookieBytes the bytes
	// of those that are sent.
	maxCookies     = 100
	maxCookieBytes = 16 << 10
)

// cookies are the cookies of one request with its redirects. The jar decides which host
// gets which; a server cannot set any for all of a public suffix such as co.uk.
type cookies struct {
	jar  *cookiejar.Jar
	kept int // how many were set, also again
}

func newCookies() *cookies {
	jar, _ := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // never fails
	return &cookies{jar: jar}
}

// receive keeps the cookies of a response. It drops those that are too long or too many.
func (c *cookies) receive(from *url.URL, response *http.Response) {
	for _, cookie := range response.Cookies() {
		if len(cookie.Name)+len(cookie.Value)+len(cookie.Path)+len(cookie.Domain) > maxCookie || c.kept == maxCookies {
			continue
		}
		c.kept++
		c.jar.SetCookies(from, []*http.Cookie{cookie})
	}
}

// send adds the cookies for a host to a request.
func (c *cookies) send(request *http.Request) {
	size := 0
	for _, cookie := range c.jar.Cookies(request.URL) {
		if size += len(cookie.Name) + len(cookie.Value); size <= maxCookieBytes {
			request.AddCookie(cookie)
		}
	}
}
