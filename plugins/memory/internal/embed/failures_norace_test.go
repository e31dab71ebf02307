//go:build !race

package embed_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
)

// Endless answers take the race detector long, and one goroutine asks.

// A server's mistake is an error. The request is repeated only if that may help.
func TestRemoteFailures(t *testing.T) {
	answer := func(text string) func(http.ResponseWriter, []string) bool {
		return func(w http.ResponseWriter, _ []string) bool {
			_, _ = io.WriteString(w, text) // the client may have given up
			return true
		}
	}
	status := func(code int) func(http.ResponseWriter, []string) bool {
		return func(w http.ResponseWriter, _ []string) bool {
			if code == http.StatusTemporaryRedirect {
				w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			}
			w.WriteHeader(code)
			return true
		}
	}
	failures := 0
	for _, tt := range []struct {
		name    string
		respond func(http.ResponseWriter, []string) bool
		asked   int
		want    string // of the error; "" means none
	}{
		{"no JSON", answer("<html>"), 1, "not a list of vectors"},
		{"other JSON", answer(`{"a":1}`), 1, "0 vectors, expected 1"},
		{"text for numbers", answer(`{"embeddings":[["a"]],"data":[{"embedding":["a"]}]}`), 1, "not a list of vectors"},
		{"too many", answer(`{"embeddings":[[1],[1]],"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}`), 1, "2 vectors, expected 1"},
		{"no direction", answer(`{"embeddings":[[0,0]],"data":[{"index":0,"embedding":[0,0]}]}`), 1, "is zero"},
		{"no dimension", answer(`{"embeddings":[[]],"data":[{"index":0,"embedding":[]}]}`), 1, "0 dimensions"},
		{"too many dimensions", answer(`{"embeddings":[[1` + strings.Repeat(",1", 20_000) + `]],"data":[{"index":0,"embedding":[1` + strings.Repeat(",1", 20_000) + `]}]}`), 1, "20001 dimensions, expected 1 to 16384"},
		{"an endless answer", func(w http.ResponseWriter, _ []string) bool {
			for block := make([]byte, 1<<20); ; {
				if _, err := w.Write(block); err != nil {
					return true // the client needs no more
				}
			}
		}, 1, "more than 67108864 bytes"},
		{"beyond 32 bits", answer(`{"embeddings":[[1e300]],"data":[{"index":0,"embedding":[1e300]}]}`), 1, "not a list of vectors"},
		{"unknown model", status(http.StatusNotFound), 1, "404 Not Found"},
		{"wrong key", status(http.StatusUnauthorized), 1, "401 Unauthorized"},
		{"a redirect", status(http.StatusTemporaryRedirect), 1, "307 Temporary Redirect"},
		{"always broken", status(http.StatusInternalServerError), 3, "500 Internal Server Error"},
		{"always busy", status(http.StatusTooManyRequests), 3, "429 Too Many Requests"},
		{"busy at first", func(w http.ResponseWriter, _ []string) bool {
			if failures++; failures > 2 {
				return false
			}
			w.Header().Set("Retry-After", "0.001")
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}, 3, ""},
		{"hangs up", func(http.ResponseWriter, []string) bool { panic(http.ErrAbortHandler) }, 3, "cannot be reached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, remotes := both(t, embed.RemoteOptions{})
			for name, r := range remotes {
				failures = 0
				s.Respond(tt.respond)
				before := len(s.Requests())
				_, err := r.Embed(t.Context(), []string{"car"})
				if got := len(s.Requests()) - before; got != tt.asked {
					t.Errorf("%s: asked %d times, want %d", name, got, tt.asked)
				}
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: Embed() = %v, want %q", name, err, tt.want)
				}
				if err != nil && (strings.Contains(err.Error(), s.URL) || strings.Contains(err.Error(), "key")) {
					t.Errorf("%s: the error tells the address or the key: %v", name, err)
				}
			}
		})
	}
}
