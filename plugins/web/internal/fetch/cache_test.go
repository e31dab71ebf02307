package fetch

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The size of a kept page covers all that is kept of it.
func TestCacheCountsMemory(t *testing.T) {
	const size = 1 << 20
	c := newCache[page](size, time.Now)
	long := strings.Repeat("x", 50<<10)
	for i := range 100 {
		kept, ok := keepable(&Response{
			Status: http.StatusOK, URL: &url.URL{Scheme: "https", Host: "example.com", Path: "/" + long}, Body: make([]byte, 0, 50<<10),
			Header: http.Header{"X-Long": {long}, "Content-Type": {long}}, Redirects: []string{long, long},
		})
		if !ok || len(kept.response.Header) != 1 {
			t.Fatalf("kept: %v, with %d headers, want the type only", ok, len(kept.response.Header))
		}
		c.put(strconv.Itoa(i), kept, kept.size(), time.Hour)
	}
	if most := size / (250 << 10); len(c.byKey) > most || len(c.byKey) == 0 || c.order.Len() != len(c.byKey) {
		t.Errorf("%d pages of 250 KiB are kept in %d bytes, want 1 to %d", len(c.byKey), size, most)
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
