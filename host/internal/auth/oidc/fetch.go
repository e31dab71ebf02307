package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolhost/toolhost/host/internal/auth"
)

const (
	// maxFetchTime bounds one fetch: discovery and keys.
	maxFetchTime = 10 * time.Second
	// maxAnswer bounds each answer of an issuer, in bytes.
	maxAnswer = 256 << 10
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10
	// maxRedirects bounds the redirects of one request, all to the same origin.
	maxRedirects = 3
	// maxKeys bounds the keys of an issuer, since a token without a key id is tried with each.
	maxKeys = 64
	// minRSA and maxRSA bound RSA keys, in bits. The minimum is that of RFC 7518.
	minRSA, maxRSA = 2048, 8192
)

// discoveryPath is where an issuer describes itself (OpenID Connect Discovery).
const discoveryPath = "/.well-known/openid-configuration"

// CheckURL checks that a text can be the identifier of an issuer: an https URL without query and
// fragment, or an http URL of a loopback address, for tests and development.
func CheckURL(text string) error {
	parsed, err := auth.CheckAddress(text)
	switch {
	case err != nil:
		return err
	case parsed.RawQuery != "" || parsed.ForceQuery || strings.Contains(text, "#"):
		return errors.New("an issuer has no query and no fragment")
	}
	return nil
}

// newClient returns a client that follows redirects to the same origin only.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{}).DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			MaxResponseHeaderBytes: maxHeader,
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true, // the next request is an hour away
		},
		CheckRedirect: func(next *http.Request, before []*http.Request) error {
			first := before[0].URL
			switch {
			case next.URL.Scheme != first.Scheme || next.URL.Host != first.Host:
				return fmt.Errorf("it redirects to another origin, %s://%s", next.URL.Scheme, next.URL.Host)
			case len(before) > maxRedirects:
				return fmt.Errorf("it redirects more than %d times", maxRedirects)
			}
			return nil
		},
	}
}

// fetch fetches the keys of the issuer that can sign access tokens.
func (k *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	var about struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"` //nolint:tagliatelle // the standard's name
	}
	discovery := strings.TrimSuffix(k.issuer.URL, "/") + discoveryPath
	if err := k.get(ctx, discovery, &about); err != nil {
		return nil, err
	}
	if about.Issuer != k.issuer.URL {
		return nil, fmt.Errorf("%s describes the issuer %.200q: url in the configuration must be exactly that", discovery, about.Issuer)
	}
	at, err := auth.CheckAddress(about.JWKSURI)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: jwks_uri %.200q: %w", discovery, about.JWKSURI, err)
	case at.Scheme == "http" && strings.HasPrefix(k.issuer.URL, "https:"):
		return nil, fmt.Errorf("%s: jwks_uri %.200q: an https issuer has its keys at an https URL", discovery, about.JWKSURI)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := k.get(ctx, about.JWKSURI, &set); err != nil {
		return nil, err
	}
	keys := usable(set.Keys)
	switch {
	case len(keys) == 0:
		return nil, fmt.Errorf("%s has no key that signs by RS256, PS256, ES256 or EdDSA", about.JWKSURI)
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("%s has %d keys, and at most %d are accepted", about.JWKSURI, len(keys), maxKeys)
	}
	return keys, nil
}

// get fetches a JSON document.
func (k *keySet) get(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	answer, err := k.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", address, err)
	case len(text) > maxAnswer:
		return fmt.Errorf("%s has more than %d bytes", address, maxAnswer)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s is not the expected JSON: %w", address, err)
	}
	return nil
}

// usable returns the public keys that can sign access tokens. "Implementations SHOULD ignore JWKs
// within a JWK Set that use kty values that are not understood by them, that are missing required
// members, or for which values are out of the supported ranges" (RFC 7517, section 5).
func usable(given []json.RawMessage) (keys []jose.JSONWebKey) {
	for _, text := range given {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(text) == nil && (key.Use == "" || key.Use == "sig") && strong(key.Key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// strong reports whether a key is public, of an accepted type, and long enough.
func strong(key any) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSA && key.N.BitLen() <= maxRSA
	case *ecdsa.PublicKey:
		return key.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return true
	}
	return false
}
