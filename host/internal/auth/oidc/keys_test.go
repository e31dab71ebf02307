package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/host/internal/auth/oidc/oidctest"
)

// fetches checks how often keys were fetched.
func (h *host) fetches(t *testing.T, when string, want int) {
	t.Helper()
	h.Fetched()
	if got := h.issuer.Requests(oidctest.DiscoveryPath); got != want {
		t.Errorf("%s: keys were fetched %d times, want %d", when, got, want)
	}
}

// TestRotation replaces the issuer's key: tokens of the new one are valid at once, those of the
// old one until the keys are fetched again.
func TestRotation(t *testing.T) {
	h := start(t, nil)
	h.fetches(t, "before any token", 0)
	old := h.issuer.Token(t, nil)
	h.want(t, "the first token", old, "ada@corp")
	h.issuer.Rotate(t)
	h.want(t, "the old key, which is known", old, "ada@corp")
	h.fetches(t, "before the new key", 1)
	h.want(t, "the new key", h.issuer.Token(t, nil), "ada@corp")
	h.fetches(t, "after the new key", 2)
	h.want(t, "the old key, which the issuer has removed", old, "no key")
	h.fetches(t, "so soon after the last one", 2)
}

// TestRemovedKeyEnds checks that a key that the issuer has removed ends with the next regular
// fetch, also for tokens that are remembered.
func TestRemovedKeyEnds(t *testing.T) {
	h := start(t, nil)
	token := h.issuer.Token(t, map[string]any{"exp": h.clock.now().Add(10 * time.Hour).Unix()})
	h.want(t, "the token", token, "ada@corp")
	h.issuer.Rotate(t)
	h.clock.add(oidc.RefreshAfter - time.Second)
	h.want(t, "before the fetch", token, "ada@corp")
	h.fetches(t, "before the fetch", 1)
	h.clock.add(time.Second)
	h.user(t, token) // begins the fetch and does not wait for it
	h.fetches(t, "after an hour", 2)
	h.want(t, "after the fetch", token, "no key")
}

// TestStorm sends a thousand tokens with unknown key ids: they cause one fetch per minute.
func TestStorm(t *testing.T) {
	h := start(t, nil)
	h.want(t, "a token", h.issuer.Token(t, nil), "ada@corp")
	evil := oidctest.NewKey(t, "")
	storm := func() {
		var all sync.WaitGroup
		for n := range 1000 {
			all.Go(func() {
				key := evil
				key.ID = fmt.Sprint("unknown-", n)
				h.want(t, key.ID, key.Sign(t, h.issuer.Claims(nil), nil), "no key")
			})
		}
		all.Wait()
	}
	storm()
	h.fetches(t, "after the first storm", 2)
	h.clock.add(oidc.UnknownEvery - time.Second)
	storm()
	h.fetches(t, "within a minute", 2)
	h.clock.add(time.Second)
	storm()
	h.fetches(t, "a minute later", 3)
	h.want(t, "a token of the issuer", h.issuer.Token(t, nil), "ada@corp")
}

// TestOneFetchForAll sends many first tokens at once: they wait for one fetch.
func TestOneFetchForAll(t *testing.T) {
	h := start(t, nil)
	arrived, answer := make(chan struct{}, 10), make(chan struct{})
	h.issuer.Answer(func(http.ResponseWriter, *http.Request) bool {
		arrived <- struct{}{}
		<-answer
		return false
	})
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			h.want(t, "a first token", h.issuer.Token(t, map[string]any{"jti": fmt.Sprint(n)}), "ada@corp")
		})
	}
	<-arrived
	close(answer)
	all.Wait()
	h.fetches(t, "after 50 tokens", 1)
}

// TestOutage stops the issuer: its known keys stay valid for a day, and no longer.
func TestOutage(t *testing.T) {
	h := start(t, nil)
	later := func(jti string) string {
		return h.issuer.Token(t, map[string]any{"jti": jti, "exp": h.clock.now().Add(100 * time.Hour).Unix()})
	}
	remembered := later("remembered")
	h.want(t, "before", remembered, "ada@corp")
	h.issuer.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	h.clock.add(oidc.KeepFor - time.Second)
	h.want(t, "a remembered token within a day", remembered, "ada@corp")
	h.want(t, "another token within a day", later("within"), "ada@corp")
	h.fetches(t, "within a day", 2)
	if !strings.Contains(h.log.String(), "known keys stay valid for a while: issuer=corp until=2026-11-29T12:00:00Z") || !strings.Contains(h.log.String(), "503") {
		t.Errorf("the log does not tell of the outage: %s", h.log)
	}
	h.clock.add(time.Second)
	h.want(t, "a remembered token after a day", remembered, "cannot be fetched")
	h.want(t, "another token after a day", later("after"), "cannot be fetched")
	h.fetches(t, "soon after a failed fetch", 2)
	h.clock.add(oidc.RetryAfter)
	h.want(t, "a token later", later("later"), "cannot be fetched")
	h.fetches(t, "a while after it", 3)
	if !strings.Contains(h.log.String(), "its callers are refused: issuer=corp") {
		t.Errorf("the log does not tell that callers are refused: %s", h.log)
	}
	h.issuer.Answer(nil)
	h.clock.add(oidc.RetryAfter)
	h.want(t, "a remembered token when the issuer is back", remembered, "ada@corp")
}

// TestDownAtTheStart makes no request before a token, and recovers once the issuer is there.
func TestDownAtTheStart(t *testing.T) {
	h := start(t, nil)
	h.issuer.Answer(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	h.fetches(t, "before any token", 0)
	h.want(t, "a token", h.issuer.Token(t, nil), "cannot be fetched")
	h.issuer.Answer(nil)
	h.want(t, "a token at once", h.issuer.Token(t, nil), "cannot be fetched")
	h.clock.add(oidc.RetryAfter)
	h.want(t, "a token a little later", h.issuer.Token(t, nil), "ada@corp")
}

// TestBadAnswers lets the issuer, or who answers for it, send what must not be believed.
func TestBadAnswers(t *testing.T) {
	elsewhere := oidctest.Start(t)
	discovery := func(about map[string]any) func(*host, http.ResponseWriter, *http.Request) bool {
		return func(_ *host, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == oidctest.DiscoveryPath {
				_ = json.NewEncoder(w).Encode(about)
			}
			return r.URL.Path == oidctest.DiscoveryPath
		}
	}
	keys := func(text string) func(*host, http.ResponseWriter, *http.Request) bool {
		return func(_ *host, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == oidctest.KeysPath {
				_, _ = io.WriteString(w, text)
			}
			return r.URL.Path == oidctest.KeysPath
		}
	}
	redirect := func(path, to string) func(*host, http.ResponseWriter, *http.Request) bool {
		return func(_ *host, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				http.Redirect(w, r, to, http.StatusFound)
			}
			return r.URL.Path == path
		}
	}
	for _, tt := range []struct {
		name   string
		answer func(*host, http.ResponseWriter, *http.Request) bool
		log    string
	}{
		{"another issuer", func(h *host, w http.ResponseWriter, r *http.Request) bool {
			return discovery(map[string]any{"issuer": h.issuer.URL + "/", "jwks_uri": h.issuer.URL + oidctest.KeysPath})(h, w, r)
		}, "must be exactly that"},
		{"discovery that redirects elsewhere", redirect(oidctest.DiscoveryPath, elsewhere.URL+oidctest.DiscoveryPath), "redirects to another origin"},
		{"keys that redirect elsewhere", redirect(oidctest.KeysPath, elsewhere.URL+oidctest.KeysPath), "redirects to another origin"},
		{"keys that redirect without end", redirect(oidctest.KeysPath, oidctest.KeysPath), "more than 3 times"},
		{"keys over http at another host", func(h *host, w http.ResponseWriter, r *http.Request) bool {
			return discovery(map[string]any{"issuer": h.issuer.URL, "jwks_uri": "http://keys.example.com/"})(h, w, r)
		}, "only https"},
		{"keys in a file", func(h *host, w http.ResponseWriter, r *http.Request) bool {
			return discovery(map[string]any{"issuer": h.issuer.URL, "jwks_uri": "file:///etc/passwd"})(h, w, r)
		}, "not a URL with a host"},
		{"no address of keys", func(h *host, w http.ResponseWriter, r *http.Request) bool {
			return discovery(map[string]any{"issuer": h.issuer.URL})(h, w, r)
		}, "jwks_uri"},
		{"a page instead of JSON", keys("<html>"), "not the expected JSON"},
		{"no keys", keys(`{"keys":[]}`), "no key that signs"},
		{"keys of 10 MB", keys(`{"keys":[` + strings.Repeat(" ", 10<<20) + `]}`), fmt.Sprintf("more than %d bytes", oidc.MaxAnswer)},
		{"a shared secret", keys(`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`), "no key that signs"},
		{"a key for encryption", func(h *host, w http.ResponseWriter, r *http.Request) bool {
			text, _ := json.Marshal(jose.JSONWebKey{Key: h.issuer.Key().Private.Public(), Use: "enc"})
			return keys(`{"keys":[`+string(text)+`]}`)(h, w, r)
		}, "no key that signs"},
		{"a private key", func(h *host, w http.ResponseWriter, r *http.Request) bool {
			text, _ := json.Marshal(jose.JSONWebKey{Key: h.issuer.Key().Private, Use: "sig"})
			return keys(`{"keys":[`+string(text)+`]}`)(h, w, r)
		}, "no key that signs"},
		{"weak keys", func(h *host, w http.ResponseWriter, r *http.Request) bool {
			short, _ := rsa.GenerateKey(rand.Reader, 1024)
			curve, _ := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
			text, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &short.PublicKey}, {Key: &curve.PublicKey}}})
			return keys(string(text))(h, w, r)
		}, "no key that signs"},
		{"too many keys", func(h *host, w http.ResponseWriter, r *http.Request) bool {
			set := jose.JSONWebKeySet{Keys: make([]jose.JSONWebKey, oidc.MaxKeys+1)}
			for i := range set.Keys {
				set.Keys[i].Key = h.issuer.Key().Private.Public()
			}
			text, _ := json.Marshal(set)
			return keys(string(text))(h, w, r)
		}, "at most 64 are accepted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t, nil)
			h.issuer.Answer(func(w http.ResponseWriter, r *http.Request) bool { return tt.answer(h, w, r) })
			h.want(t, "a token", h.issuer.Token(t, nil), "cannot be fetched")
			if !strings.Contains(h.log.String(), tt.log) {
				t.Errorf("the log lacks %q: %s", tt.log, h.log)
			}
		})
	}
	if n := elsewhere.Requests(oidctest.DiscoveryPath) + elsewhere.Requests(oidctest.KeysPath); n != 0 {
		t.Errorf("%d redirects to another origin were followed", n)
	}
}

// TestUnknownKeysAreLeftOut takes the keys that it knows out of a set with others, and follows a
// redirect of the issuer to itself.
func TestUnknownKeysAreLeftOut(t *testing.T) {
	h := start(t, nil)
	h.issuer.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case oidctest.KeysPath:
			http.Redirect(w, r, "/moved", http.StatusFound)
		case "/moved":
			key, _ := json.Marshal(jose.JSONWebKey{Key: h.issuer.Key().Private.Public(), KeyID: h.issuer.Key().ID})
			fmt.Fprintf(w, `{"keys":[{"kty":"new","x":1},{"kty":"RSA"},{"kty":"oct","k":"AAAA","kid":%q},7,%s]}`, h.issuer.Key().ID, key)
		default:
			return false
		}
		return true
	})
	h.want(t, "a token", h.issuer.Token(t, nil), "ada@corp")
}

// TestKeyForOneAlgorithm: a key that names its algorithm verifies no other.
func TestKeyForOneAlgorithm(t *testing.T) {
	h := start(t, nil)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	h.issuer.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == oidctest.KeysPath {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &private.PublicKey, KeyID: "a", Algorithm: string(jose.PS256)}}})
		}
		return r.URL.Path == oidctest.KeysPath
	})
	for algorithm, want := range map[jose.SignatureAlgorithm]string{jose.PS256: "ada@corp", jose.RS256: "no key"} {
		key := oidctest.Key{ID: "a", Algorithm: algorithm, Private: private}
		h.want(t, string(algorithm), key.Sign(t, h.issuer.Claims(nil), nil), want)
	}
}

// TestHangingIssuer bounds how long a fetch takes, and ends it when the issuer is removed.
func TestHangingIssuer(t *testing.T) {
	h := start(t, nil)
	left := make(chan struct{}, 10)
	h.issuer.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != oidctest.KeysPath {
			return false
		}
		<-r.Context().Done()
		left <- struct{}{}
		return true
	})
	quick := oidc.New(h.options(h.issuer.Settings("corp")).WithFetchTime(50 * time.Millisecond))
	t.Cleanup(func() { _ = quick.Close() })
	slow := &host{Issuers: quick, issuer: h.issuer, clock: h.clock, log: h.log}
	slow.want(t, "a token", h.issuer.Token(t, nil), "cannot be fetched")
	<-left
	if !strings.Contains(h.log.String(), "no answer within 50ms") {
		t.Errorf("the log does not tell that the issuer hangs: %s", h.log)
	}

	arrived := make(chan struct{})
	h.issuer.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		close(arrived)
		<-r.Context().Done()
		return true
	})
	var waiting sync.WaitGroup
	waiting.Go(func() { h.want(t, "a token that waits", h.issuer.Token(t, nil), "cannot be fetched") })
	<-arrived
	if err := h.Close(); err != nil { // ends the fetch, whose bound is 10 seconds
		t.Error(err)
	}
	waiting.Wait()
	h.want(t, "a token afterwards", h.issuer.Token(t, nil), "does not list")
}

// TestUnknownCertificate refuses an issuer whose certificate nobody vouches for.
func TestUnknownCertificate(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	h := start(t, func(i *oidc.Issuer) { i.URL = server.URL })
	h.want(t, "a token", h.issuer.Token(t, map[string]any{"iss": server.URL}), "cannot be fetched")
	if !strings.Contains(h.log.String(), "certificate signed by unknown authority") {
		t.Errorf("the log does not tell of the certificate: %s", h.log)
	}
}
