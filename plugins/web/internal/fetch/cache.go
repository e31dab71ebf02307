package fetch

import (
	"container/list"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The cache is a private one of each owner, by the rules of RFC 9111 that concern
// a client which always sends the same headers: lifetime, age, and validation.

const (
	// heuristicShare and maxHeuristic say how long an answer counts as fresh that
	// tells when it was changed last, and not how long it holds.
	heuristicShare = 10
	maxHeuristic   = time.Hour
	// entrySize is what an answer takes beside its body and its headers.
	entrySize = 1 << 10
)

type cacheKey struct{ owner, url string }

// cached is an answer that is kept. It is never changed.
type cached struct {
	answer Response
	// born is when the answer was new, by our clock, and lifetime how long it
	// counts as fresh from then on.
	born     time.Time
	lifetime time.Duration
	// once says that the answer is for one request: another one does not get it, but
	// whoever made that can look at it again.
	once bool
}

// storable returns an answer as it is kept, and whether it may be. at is when the
// server sent it, or said that it is still right; again says that another request
// may get it, too.
func storable(r *Response, at time.Time, again bool) (*cached, bool) {
	directives := cacheControl(r.Header)
	if _, never := directives["no-store"]; never {
		return nil, false
	}
	lifetime, explicit := lifetimeOf(r.Header, directives, at)
	once := !again || strings.Contains(r.Header.Get("Vary"), "*")
	switch r.Status {
	case http.StatusOK, http.StatusMovedPermanently, http.StatusPermanentRedirect, http.StatusNotFound, http.StatusGone:
	case http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect:
		once = once || !explicit
	default:
		return nil, false
	}
	age, _ := seconds(r.Header.Get("Age"))
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		age = max(age, at.Sub(date)) // what keeps it on the way need not say so (RFC 9111, 4.2.3)
	}
	answer := *r
	answer.turn = nil
	return &cached{answer: answer, born: at.Add(-age), lifetime: lifetime, once: once}, true
}

// lifetimeOf returns how long an answer that came at a time counts as fresh, and
// whether it says so itself.
func lifetimeOf(h http.Header, directives map[string]string, at time.Time) (time.Duration, bool) {
	if _, always := directives["no-cache"]; always {
		return 0, true
	}
	if text, ok := directives["max-age"]; ok {
		age, _ := seconds(text) // what cannot be read is no time
		return age, true
	}
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		date = at // "MUST record the time it was received" (RFC 9110, 6.6.1)
	}
	if text := h.Get("Expires"); text != "" {
		expires, err := http.ParseTime(text)
		if err != nil {
			return 0, true
		}
		return max(0, expires.Sub(date)), true
	}
	if changed, err := http.ParseTime(h.Get("Last-Modified")); err == nil {
		return max(0, min(date.Sub(changed)/heuristicShare, maxHeuristic)), false
	}
	return 0, false
}

// cacheControl returns the directives of an answer, in lower case.
func cacheControl(h http.Header) map[string]string {
	directives := make(map[string]string)
	for part := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		directives[strings.ToLower(name)] = strings.Trim(value, `"`)
	}
	return directives
}

// seconds reads a number of seconds, and bounds it.
func seconds(text string) (time.Duration, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if errors.Is(err, strconv.ErrRange) && n > 0 {
		err = nil // a very large one
	}
	if err != nil || n < 0 {
		return 0, false
	}
	return time.Duration(min(n, int64(365*24*time.Hour/time.Second))) * time.Second, true
}

func (e *cached) fresh(now time.Time) bool { return now.Sub(e.born) < e.lifetime }

// condition asks the server to answer only if what is kept is no longer right.
func (e *cached) condition(h http.Header) {
	if tag := e.answer.Header.Get("ETag"); tag != "" {
		h.Set("If-None-Match", tag)
	} else if changed := e.answer.Header.Get("Last-Modified"); changed != "" {
		h.Set("If-Modified-Since", changed)
	}
}

// confirmed returns the answer after the server said, with these headers, that it is
// still right, and whether that is said of this answer.
func (e *cached) confirmed(h http.Header) (r *Response, meant bool) {
	r = e.response("revalidated")
	if !e.isNamed(h) {
		return r, false // "MUST NOT use the new response to update any stored responses" (RFC 9111, 4.3.4)
	}
	r.Header.Del("Age") // it and the date are those of an answer which came earlier
	r.Header.Del("Date")
	for _, name := range []string{"Cache-Control", "Date", "Etag", "Expires", "Last-Modified", "Vary", "Age"} {
		if values := h.Values(name); len(values) > 0 {
			r.Header[name] = values
		}
	}
	return r, true
}

// isNamed reports whether the headers name no other answer than this one.
func (e *cached) isNamed(h http.Header) bool {
	tag, changed := h.Get("ETag"), h.Get("Last-Modified")
	own, ownChange := e.answer.Header.Get("ETag"), e.answer.Header.Get("Last-Modified")
	switch {
	case tag == "":
		return changed == "" || changed == ownChange
	case own == "" && strings.HasPrefix(tag, "W/"): // one that this answer came without
		return changed != "" && changed == ownChange
	}
	return opaque(tag) == opaque(own)
}

// opaque is an entity tag without what says that it is weak: a server may call an
// answer that it has packed W/"1", and confirm it as "1".
func opaque(tag string) string { return strings.TrimPrefix(tag, "W/") }

// response returns the answer for a caller.
func (e *cached) response(how string) *Response {
	r := e.answer
	u := *r.URL
	r.URL, r.Header, r.Cached, r.Redirects = &u, maps.Clone(r.Header), how, nil
	return &r
}

// size is what the answer takes in memory.
func (e *cached) size() int64 {
	size := entrySize + int64(cap(e.answer.Body)) + int64(len(e.answer.URL.String()))
	for name, values := range e.answer.Header {
		for _, value := range values {
			size += int64(len(name) + len(value) + entrySize/16)
		}
	}
	return size
}

// cache holds answers; those that were used longest ago go first.
type cache struct {
	max int64

	mu    sync.Mutex // guards what follows
	size  int64
	order *list.List // of *cacheEntry, the last used first
	byKey map[cacheKey]*list.Element
}

type cacheEntry struct {
	key   cacheKey
	value *cached
}

func newCache(size int64) *cache {
	return &cache{max: size, order: list.New(), byKey: make(map[cacheKey]*list.Element)}
}

func (c *cache) get(key cacheKey) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.byKey[key]
	if element == nil {
		return nil
	}
	c.order.MoveToFront(element)
	entry, _ := element.Value.(*cacheEntry) // all are
	return entry.value
}

func (c *cache) put(key cacheKey, value *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.byKey[key])
	if value.size() > c.max {
		return
	}
	c.byKey[key] = c.order.PushFront(&cacheEntry{key: key, value: value})
	c.size += value.size()
	for c.size > c.max {
		c.remove(c.order.Back())
	}
}

func (c *cache) drop(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.byKey[key])
}

// forget drops the entries of owners.
func (c *cache) forget(owned func(owner string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, element := range c.byKey {
		if owned(key.owner) {
			c.remove(element)
		}
	}
}

// remove forgets an entry; nil is none.
func (c *cache) remove(element *list.Element) {
	if element == nil {
		return
	}
	entry, _ := c.order.Remove(element).(*cacheEntry) // all are
	delete(c.byKey, entry.key)
	c.size -= entry.value.size()
}
