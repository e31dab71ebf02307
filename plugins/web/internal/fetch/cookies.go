package fetch

import (
	"cmp"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"
)

const (
	// maxCookies is how many cookies one answer may set, and maxCookie how many bytes
	// each has: what browsers take.
	maxCookies = 50
	maxCookie  = 4 << 10
	// maxJar bounds the bytes of a jar.
	maxJar = 128 << 10
)

// jar keeps cookies, within bounds.
type jar struct {
	mu    sync.Mutex // guards what follows
	kept  http.CookieJar
	sizes map[cookieID]cookieSize // of those that are kept
	size  int                     // of all
}

// cookieID is what a cookie has in common with the one that replaces it.
type cookieID struct{ domain, path, name string }

// cookieSize is how many bytes a cookie has, and when it is none any more; zero for
// one that does not expire.
type cookieSize struct {
	bytes   int
	expires time.Time
}

// NewJar returns a jar without cookies. It takes no more when it is full.
func NewJar() http.CookieJar {
	kept, _ := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // never fails
	return &jar{kept: kept, sizes: make(map[cookieID]cookieSize)}
}

// Cookies implements [http.CookieJar].
func (j *jar) Cookies(u *url.URL) []*http.Cookie {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.kept.Cookies(u)
}

// SetCookies implements [http.CookieJar].
func (j *jar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	for _, cookie := range cookies[:min(len(cookies), maxCookies)] {
		id, ok := identify(u, cookie)
		if !ok || len(cookie.Raw) > maxCookie {
			continue
		}
		size := cookieSize{len(cookie.Raw) + len(id.domain) + len(id.path), expiry(cookie, now)}
		if gone(size.expires, now) {
			j.drop(id)
			continue
		}
		if j.with(id, size) > maxJar {
			j.dropExpired(now)
		}
		if j.with(id, size) > maxJar {
			continue // whatever others have set stays
		}
		j.drop(id) // really: one that the jar refuses must not count in its place
		j.size += size.bytes
		j.sizes[id] = size
		j.kept.SetCookies(u, []*http.Cookie{cookie})
	}
}

// with is the size that the jar would have with a cookie.
func (j *jar) with(id cookieID, size cookieSize) int { return j.size - j.sizes[id].bytes + size.bytes }

// drop removes a cookie.
func (j *jar) drop(id cookieID) {
	j.size -= j.sizes[id].bytes
	delete(j.sizes, id)
	ended := &http.Cookie{Name: id.name, Path: id.path, MaxAge: -1} //nolint:gosec // it is sent to nobody
	j.kept.SetCookies(&url.URL{Scheme: "https", Host: id.domain}, []*http.Cookie{ended})
}

// dropExpired removes the cookies that have expired.
func (j *jar) dropExpired(now time.Time) {
	for id, size := range j.sizes {
		if gone(size.expires, now) {
			j.drop(id)
		}
	}
}

// identify says which cookie of a jar this is, that the host of an address sets, and
// whether that host may set it.
func identify(u *url.URL, c *http.Cookie) (id cookieID, ok bool) {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	at := c.Path
	if !strings.HasPrefix(at, "/") { // it is for the folder of the page
		at = cmp.Or(u.Path[:max(0, strings.LastIndexByte(u.Path, '/'))], "/")
	}
	domain := strings.ToLower(strings.TrimPrefix(c.Domain, "."))
	switch {
	case c.Domain == "":
		domain = host
	case net.ParseIP(host) != nil: // there is nothing below an address
		return cookieID{}, false
	case domain != host && (!strings.HasSuffix(host, "."+domain) || publicsuffix.List.PublicSuffix(domain) == domain):
		return cookieID{}, false
	}
	return cookieID{domain, at, c.Name}, true
}

// expiry is when a cookie ends, by its own words; zero if they say nothing.
func expiry(c *http.Cookie, now time.Time) time.Time {
	if c.MaxAge != 0 {
		return now.Add(time.Duration(c.MaxAge) * time.Second)
	}
	return c.Expires
}

// gone reports whether a cookie has ended that does at a time.
func gone(expires, now time.Time) bool { return !expires.IsZero() && !expires.After(now) }

// cookies are those that a request to an address would carry.
func cookies(jar http.CookieJar, u *url.URL) string {
	var all strings.Builder
	for _, cookie := range jar.Cookies(u) {
		all.WriteString(cookie.Name + "=" + cookie.Value + ";")
	}
	return all.String()
}
