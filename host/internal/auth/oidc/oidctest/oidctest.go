// Package oidctest is an OpenID Connect issuer for tests, on loopback.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolhost/toolhost/host/internal/auth/oidc"
)

// Audience is the audience of the issuer's tokens.
const Audience = "https://tools.example.com"

// Key is a key of an issuer.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// NewKey returns a new key for ES256.
func NewKey(tb testing.TB, id string) Key {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return Key{ID: id, Algorithm: jose.ES256, Private: private}
}

// Sign signs claims as an access token, with further headers.
func (k Key) Sign(tb testing.TB, claims, headers map[string]any) string {
	tb.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		tb.Fatal(err)
	}
	return k.SignText(tb, string(payload), headers)
}

// SignText is [Key.Sign] for claims that are not what a map can hold.
func (k Key) SignText(tb testing.TB, payload string, headers map[string]any) string {
	tb.Helper()
	opts := (&jose.SignerOptions{}).WithType("at+jwt")
	if k.ID != "" {
		opts = opts.WithHeader("kid", k.ID)
	}
	for name, value := range headers {
		opts = opts.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: k.Algorithm, Key: k.Private}, opts)
	if err != nil {
		tb.Fatal(err)
	}
	signed, err := signer.Sign([]byte(payload))
	if err != nil {
		tb.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		tb.Fatal(err)
	}
	return token
}

// Issuer is a running issuer.
type Issuer struct {
	URL string
	// Now is its clock.
	Now func() time.Time

	server *httptest.Server

	mu       sync.Mutex // guards what follows
	keys     []Key
	made     int
	requests map[string]int
	answer   func(w http.ResponseWriter, r *http.Request) bool
}

// Start starts an issuer with one key. It stops at the end of the test.
func Start(tb testing.TB) *Issuer {
	tb.Helper()
	i := &Issuer{Now: time.Now, requests: make(map[string]int)}
	i.server = httptest.NewServer(http.HandlerFunc(i.serve))
	tb.Cleanup(i.Stop)
	i.URL = i.server.URL
	i.Rotate(tb)
	return i
}

// Stop stops the issuer: connections to it are refused.
func (i *Issuer) Stop() {
	i.server.CloseClientConnections()
	i.server.Close()
}

// Settings are the configuration of the issuer.
func (i *Issuer) Settings(name string) oidc.Issuer {
	return oidc.Issuer{Name: name, URL: i.URL, Audience: Audience, UserClaim: "sub", GroupsClaim: "groups"}
}

// Rotate replaces the issuer's keys by a new one.
func (i *Issuer) Rotate(tb testing.TB) {
	tb.Helper()
	i.mu.Lock()
	i.made++
	id := "key-" + strconv.Itoa(i.made)
	i.mu.Unlock()
	i.Use(NewKey(tb, id))
}

// Use replaces the issuer's keys. The first one signs.
func (i *Issuer) Use(keys ...Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// Key returns the key that signs.
func (i *Issuer) Key() Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[0]
}

// Answer makes a function answer the requests to the issuer; if it returns false, the issuer
// answers itself. nil is as if it always did.
func (i *Issuer) Answer(answer func(w http.ResponseWriter, r *http.Request) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = answer
}

// Requests returns how often a path was requested.
func (i *Issuer) Requests(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requests[path]
}

// The paths of the issuer.
const (
	DiscoveryPath = "/.well-known/openid-configuration"
	KeysPath      = "/keys"
)

// Claims returns the claims of a token of ada for the next five minutes, with changes. A nil value
// removes a claim.
func (i *Issuer) Claims(changes map[string]any) map[string]any {
	now := i.Now().Unix()
	claims := map[string]any{"iss": i.URL, "sub": "ada", "aud": Audience, "client_id": "agent", "iat": now, "exp": now + 300}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// Token returns an access token with changed claims.
func (i *Issuer) Token(tb testing.TB, changes map[string]any) string {
	tb.Helper()
	return i.Key().Sign(tb, i.Claims(changes), nil)
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.requests[r.URL.Path]++
	answer, keys := i.answer, i.keys
	i.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case DiscoveryPath:
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + KeysPath})
	case KeysPath:
		var set jose.JSONWebKeySet
		for _, key := range keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Private.Public(), KeyID: key.ID, Use: "sig"})
		}
		_ = json.NewEncoder(w).Encode(set)
	default:
		http.NotFound(w, r)
	}
}
