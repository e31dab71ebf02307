package embed_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
	"github.com/toolhost/toolhost/plugins/memory/internal/embed/embedtest"
)

func cosine(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func length(v []float32) float64 { return math.Sqrt(cosine(v, v)) }

func TestLocal(t *testing.T) {
	texts := []string{"the painted fence", "paintings of fences", "a paimted fense", "quarterly tax report", "", "東京都", "🎉", "\x00\xff"}
	first, err := embed.Local{}.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	again, err := embed.Local{}.Embed(t.Context(), texts)
	if err != nil || !cmp.Equal(first, again) {
		t.Errorf("the same texts have other vectors: %v", err)
	}
	for i, v := range first {
		if len(v) != embed.LocalDimension || math.Abs(length(v)-1) > 1e-6 {
			t.Errorf("%q has a vector of %d dimensions and the length %v", texts[i], len(v), length(v))
		}
	}
	if same, misspelled, other := cosine(first[0], first[1]), cosine(first[0], first[2]), cosine(first[0], first[3]); same < 0.5 || misspelled < 0.12 || other > 0.06 {
		t.Errorf("cosine of the same words %.2f, misspelled %.2f, others %.2f", same, misspelled, other)
	}
}

// both are the two interfaces over one server.
func both(t *testing.T, opts embed.RemoteOptions) (*embedtest.Server, map[string]*embed.Remote) {
	t.Helper()
	s := embedtest.Start(t)
	if opts.Timeout == 0 {
		opts.Timeout = time.Minute
	}
	opts.BaseURL, opts.Pause = s.URL, time.Millisecond
	ollama, err := embed.NewOllama(opts)
	if err != nil {
		t.Fatal(err)
	}
	opts.BaseURL += "/v1/"
	opts.Key = func() (string, error) { return "key", nil }
	openai, err := embed.NewOpenAI(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s, map[string]*embed.Remote{"ollama": ollama, "openai": openai}
}

func TestRemote(t *testing.T) {
	s, remotes := both(t, embed.RemoteOptions{Model: "some-model"})
	for name, r := range remotes {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for i := range 70 {
				texts = append(texts, fmt.Sprintf("car %d", i))
			}
			texts[69] = "doctor " + strings.Repeat("é", 20_000)
			before := len(s.Requests())
			vectors, err := r.Embed(t.Context(), texts)
			if err != nil {
				t.Fatal(err)
			}
			if len(vectors) != 70 || cosine(vectors[0], vectors[68]) < 0.99 || cosine(vectors[0], vectors[69]) > 0.1 || math.Abs(length(vectors[3])-1) > 1e-6 {
				t.Errorf("%d vectors; the first: %v, the last: %v", len(vectors), vectors[0], vectors[len(vectors)-1])
			}
			requests := s.Requests()[before:]
			if len(requests) != 3 || len(requests[0].Texts) != embed.Batch || requests[0].Model != "some-model" {
				t.Errorf("%d requests, the first with %d texts for %s; want 3 with %d at most", len(requests), len(requests[0].Texts), requests[0].Model, embed.Batch)
			}
			if sent := requests[2].Texts[5]; len(sent) > 8<<10 {
				t.Errorf("a text of %d bytes was sent", len(sent))
			}
			if want := map[string]string{"ollama": "", "openai": "Bearer key"}[name]; requests[0].Authorization != want {
				t.Errorf("the key was sent as %q, want %q", requests[0].Authorization, want)
			}
			if !strings.HasPrefix(r.Name(), name+":127.0.0.1:") || !strings.HasSuffix(r.Name(), ":some-model") {
				t.Errorf("Name() = %q", r.Name())
			}
		})
	}
}

// A server that does not answer is given up, and the call that waits with it.
func TestRemoteIsSlow(t *testing.T) {
	s, remotes := both(t, embed.RemoteOptions{Timeout: 20 * time.Millisecond})
	release := make(chan struct{})
	s.Respond(func(http.ResponseWriter, []string) bool { <-release; return true })
	defer close(release)
	if _, err := remotes["ollama"].Embed(t.Context(), []string{"car"}); err == nil || !strings.Contains(err.Error(), "did not respond in time") {
		t.Errorf("Embed() = %v, want a time-out", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := len(s.Requests())
	if _, err := remotes["openai"].Embed(ctx, []string{"car"}); err == nil || len(s.Requests()) > before+1 {
		t.Errorf("Embed() of a call that was given up = %v after %d requests", err, len(s.Requests())-before)
	}
}

// The error for a missing or mistaken server does not contain its address.
func TestRemoteIsNotThere(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	untrusted.StartTLS()
	defer untrusted.Close()
	for address, want := range map[string]string{
		gone.URL: "connection refused", "http://nowhere.invalid:1": "its name is unknown", untrusted.URL: "its certificate is not trusted",
	} {
		r, err := embed.NewOllama(embed.RemoteOptions{BaseURL: address, Timeout: time.Minute, Pause: time.Millisecond, Client: &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, place string) (net.Conn, error) {
				if strings.HasPrefix(place, "nowhere") { // without asking a name server
					return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: place}}
				}
				return new(net.Dialer).DialContext(ctx, network, place)
			},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Embed(t.Context(), []string{"car"}); err == nil || err.Error() != "the server cannot be reached: "+want {
			t.Errorf("Embed() by %s = %v, want %q", address, err, want)
		}
	}
}

// A model that was replaced is found out.
func TestRemoteChangesDimension(t *testing.T) {
	s, remotes := both(t, embed.RemoteOptions{})
	for name, r := range remotes {
		if _, err := r.Embed(t.Context(), []string{"car"}); err != nil {
			t.Fatal(err)
		}
		s.Widen(3)
		if _, err := r.Embed(t.Context(), []string{"car"}); err == nil || !strings.Contains(err.Error(), "if the model was replaced") {
			t.Errorf("%s: Embed() = %v, want that the model was replaced", name, err)
		}
		s.Widen(-3)
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for _, address := range []string{"ftp://x", "localhost:11434", "http://", "http://user:pass@x/", "::"} {
		if _, err := embed.NewOllama(embed.RemoteOptions{BaseURL: address}); err == nil {
			t.Errorf("NewOllama(%q) takes it", address)
		}
	}
	if _, err := embed.NewOpenAI(embed.RemoteOptions{}); err != nil {
		t.Errorf("NewOpenAI() without an address = %v", err)
	}
}

func FuzzLocal(f *testing.F) {
	f.Add("the painted fence")
	f.Add("東京都 🎉 \x00\xff")
	f.Fuzz(func(t *testing.T, text string) {
		vectors, err := embed.Local{}.Embed(t.Context(), []string{text})
		if err != nil || math.Abs(length(vectors[0])-1) > 1e-6 {
			t.Errorf("%q has the length %v: %v", text, length(vectors[0]), err)
		}
	})
}
