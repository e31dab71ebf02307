package fetch

import (
	"container/list"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxAge is how long a page is kept.
	maxAge = 15 * time.Minute
	// entrySize is the memory that an entry takes besides its texts.
	entrySize = 1 << 10
)

// page is a kept page.
type page struct {
	response Response
	reuse    time.Duration // how long the page answers other requests for its URL
}

// keepable returns the page of a response, and reports whether it may be kept. Its
// Cache-Control may shorten the time for which the page is reused.
func keepable(r *Response) (page, bool) {
	kept := page{response: *r, reuse: maxAge}
	kept.response.turn = nil
	kept.response.Header = http.Header{"Content-Type": r.Header["Content-Type"]}
	for directive := range strings.SplitSeq(strings.Join(r.Header.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-store":
			return page{}, false
		case "no-cache":
			kept.reuse = 0
		case "max-age":
			age, _ := seconds(strings.Trim(value, `"`)) // an invalid age is 0
			kept.reuse = min(kept.reuse, age)
		}
	}
	return kept, r.Status == http.StatusOK
}

// size returns the memory that the page takes.
func (p *page) size() int64 {
	size := entrySize + cap(p.response.Body) + len(p.response.URL.String())
	for _, text := range slices.Concat(p.response.Redirects, p.response.Header["Content-Type"]) {
		size += len(text)
	}
	return int64(size)
}

// seconds parses a number of seconds. More than a year counts as a year.
func seconds(text string) (time.Duration, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if errors.Is(err, strconv.ErrRange) && n > 0 {
		err = nil
	}
	if err != nil || n < 0 {
		return 0, false
	}
	return time.Duration(min(n, int64(365*24*time.Hour/time.Second))) * time.Second, true
}

// cache keeps values until they expire. When it is full, it drops the least recently
// used ones.
type cache[V any] struct {
	max int64 // bytes
	now func() time.Time

	mu    sync.Mutex // guards size, order and byKey
	size  int64
	order *list.List // of *entry[V], the most recently used first
	byKey map[string]*list.Element
}

type entry[V any] struct {
	key     string
	value   V
	size    int64
	expires time.Time
}

func newCache[V any](size int64, now func() time.Time) *cache[V] {
	return &cache[V]{max: size, now: now, order: list.New(), byKey: make(map[string]*list.Element)}
}

func (c *cache[V]) get(key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.byKey[key]
	if element == nil {
		return value, false
	}
	found, _ := element.Value.(*entry[V])
	if !c.now().Before(found.expires) {
		c.remove(element)
		return value, false
	}
	c.order.MoveToFront(element)
	return found.value, true
}

func (c *cache[V]) put(key string, value V, size int64, lifetime time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.byKey[key])
	if size > c.max {
		return
	}
	c.byKey[key] = c.order.PushFront(&entry[V]{key: key, value: value, size: size, expires: c.now().Add(lifetime)})
	for c.size += size; c.size > c.max; {
		c.remove(c.order.Back())
	}
}

func (c *cache[V]) drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.byKey[key])
}

// remove removes an entry; nil is ignored. The caller holds mu.
func (c *cache[V]) remove(element *list.Element) {
	if element == nil {
		return
	}
	removed, _ := c.order.Remove(element).(*entry[V])
	delete(c.byKey, removed.key)
	c.size -= removed.size
}
