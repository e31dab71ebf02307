package fetch

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What an answer takes is counted, not only its body.
func TestCacheCountsHeaders(t *testing.T) {
	const size = 1 << 20
	c := newCache(size)
	for i := range 100 {
		entry, ok := storable(&Response{
			Status: http.StatusOK, URL: &url.URL{Scheme: "https", Host: "example.com", Path: "/" + strconv.Itoa(i)}, Body: make([]byte, 0, 50<<10),
			Header: http.Header{"X-Long": {strings.Repeat("x", 200<<10)}},
		}, time.Now(), true)
		if !ok {
			t.Fatal("it may not be kept")
		}
		c.put(cacheKey{owner: "ada", url: strconv.Itoa(i)}, entry)
	}
	if most := size / (250 << 10); len(c.byKey) > most || len(c.byKey) == 0 {
		t.Errorf("%d answers of 250 KiB are kept in %d bytes, want 1 to %d", len(c.byKey), size, most)
	}
}

func TestCacheForgets(t *testing.T) {
	c := newCache(1 << 20)
	for _, owner := range []string{"ada", "eve"} {
		c.put(cacheKey{owner: owner}, &cached{answer: Response{URL: &url.URL{}}})
	}
	c.forget(func(owner string) bool { return owner == "eve" })
	if c.get(cacheKey{owner: "ada"}) == nil || c.get(cacheKey{owner: "eve"}) != nil {
		t.Error("the wrong owner is forgotten")
	}
}

// A confirmation is of the answer that it names, or of the only one if it names none
// (RFC 9111, 4.3.4).
func TestConfirmationNamesItsAnswer(t *testing.T) {
	headers := func(tag, changed string) http.Header {
		h := make(http.Header)
		h.Set("ETag", tag)
		h.Set("Last-Modified", changed)
		return h
	}
	for _, tt := range []struct {
		name      string
		kept, now http.Header
		want      bool
	}{
		{"no name", headers("a", "1"), headers("", ""), true},
		{"its tag", headers("a", "1"), headers("a", "1"), true},
		{"its tag, weak", headers("a", ""), headers("W/a", ""), true},
		{"another tag", headers("a", "1"), headers("b", "1"), false},
		{"its time", headers("a", "1"), headers("", "1"), true},
		{"another time", headers("a", "1"), headers("", "2"), false},
		{"a tag that it had not", headers("", "1"), headers("a", "1"), false},
		{"a weak tag that it had not, and its time", headers("", "1"), headers("W/a", "1"), true},
		{"a weak tag that it had not, and another time", headers("", "1"), headers("W/a", "2"), false},
		{"a weak tag that it had not, alone", headers("", "1"), headers("W/a", ""), false},
	} {
		e := &cached{answer: Response{Header: tt.kept}}
		if got := e.isNamed(tt.now); got != tt.want {
			t.Errorf("%s: isNamed = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-1": 0, "soon": 0, "1h5": 0, "99999999999": time.Hour, "99999999999999999999": time.Hour,
		"Wed, 01 May 2024 12:00:30 GMT": 30 * time.Second, "Wed, 01 May 2024 11:00:00 GMT": 0, "Fri, 31 Dec 9999 23:59:59 GMT": time.Hour,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
