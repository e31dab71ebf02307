package oidc_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/host/internal/auth/oidc/oidctest"
)

func part(tb testing.TB, value any) string {
	tb.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// TestAlgorithms accepts each algorithm with a key of its type only.
func TestAlgorithms(t *testing.T) {
	h := start(t, nil)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec := oidctest.NewKey(t, "ec")
	h.issuer.Use(
		oidctest.Key{ID: "rsa", Algorithm: jose.RS256, Private: rsaKey}, ec,
		oidctest.Key{ID: "ed", Algorithm: jose.EdDSA, Private: ed},
		oidctest.Key{ID: "p384", Algorithm: jose.ES384, Private: p384},
	)
	for _, tt := range []struct {
		key  oidctest.Key
		want string
	}{
		{oidctest.Key{ID: "rsa", Algorithm: jose.RS256, Private: rsaKey}, "ada@corp"},
		{oidctest.Key{ID: "rsa", Algorithm: jose.PS256, Private: rsaKey}, "ada@corp"},
		{oidctest.Key{ID: "", Algorithm: jose.RS256, Private: rsaKey}, "ada@corp"}, // no key id: any key of the type
		{ec, "ada@corp"},
		{oidctest.Key{ID: "ed", Algorithm: jose.EdDSA, Private: ed}, "ada@corp"},
		{oidctest.Key{ID: "rsa", Algorithm: jose.RS512, Private: rsaKey}, "not a JWT"},
		{oidctest.Key{ID: "p384", Algorithm: jose.ES384, Private: p384}, "not a JWT"},
		{oidctest.Key{ID: "rsa", Algorithm: jose.ES256, Private: ec.Private}, "no key"}, // an RSA key as if it were EC
		{oidctest.Key{ID: "ec", Algorithm: jose.RS256, Private: rsaKey}, "no key"},
		{oidctest.Key{ID: "ed", Algorithm: jose.ES256, Private: ec.Private}, "no key"},
		{oidctest.Key{ID: "ec", Algorithm: jose.ES256, Private: oidctest.NewKey(t, "").Private}, "signature is wrong"},
	} {
		h.want(t, string(tt.key.Algorithm)+" with "+tt.key.ID, tt.key.Sign(t, h.issuer.Claims(nil), nil), tt.want)
	}
}

// TestForged sends tokens that the issuer has not signed, to a host that knows the issuer's keys.
func TestForged(t *testing.T) {
	h := start(t, nil)
	key := h.issuer.Key()
	good := h.issuer.Token(t, nil)
	h.want(t, "a token of the issuer", good, "ada@corp")
	claims := part(t, h.issuer.Claims(map[string]any{"sub": "root"}))
	signature := good[strings.LastIndex(good, "."):]

	der, err := x509.MarshalPKIXPublicKey(key.Private.Public())
	if err != nil {
		t.Fatal(err)
	}
	jwk, err := json.Marshal(jose.JSONWebKey{Key: key.Private.Public(), KeyID: key.ID, Use: "sig"})
	if err != nil {
		t.Fatal(err)
	}
	withHMAC := func(alg string, secret []byte) string {
		body := part(t, map[string]any{"alg": alg, "kid": key.ID, "typ": "at+jwt"}) + "." + claims
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(body))
		return body + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	header := func(alg string) string {
		return part(t, map[string]any{"alg": alg, "kid": key.ID, "typ": "at+jwt"}) + "." + claims
	}
	evil := oidctest.NewKey(t, key.ID) // the same key id
	encrypter, err := jose.NewEncrypter(jose.A128GCM, jose.Recipient{Algorithm: jose.ECDH_ES, Key: key.Private.Public()}, (&jose.EncrypterOptions{}).WithContentType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := encrypter.Encrypt([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	jwe, err := encrypted.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	both, err := json.Marshal(map[string]any{"payload": strings.Split(good, ".")[1], "protected": strings.Split(good, ".")[0], "signature": strings.Split(good, ".")[2]})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, token, want string }{
		{"alg none without a signature", header("none") + ".", "not a JWT"},
		{"alg none with one", header("none") + signature, "not a JWT"},
		{"alg None", header("None") + ".", "not a JWT"},
		{"no alg", part(t, map[string]any{"kid": key.ID}) + "." + claims + signature, "not a JWT"},
		{"HMAC with the public key, DER", withHMAC("HS256", der), "not a JWT"},
		{"HMAC with the public key, PEM", withHMAC("HS256", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), "not a JWT"},
		{"HMAC with the public key, JWK", withHMAC("HS256", jwk), "not a JWT"},
		{"HMAC that says ES256", withHMAC("ES256", der), "signature is wrong"},
		{"another's signature with its key id", evil.Sign(t, h.issuer.Claims(nil), nil), "signature is wrong"},
		{"other claims with the signature", strings.Split(good, ".")[0] + "." + claims + signature, "signature is wrong"},
		{"no signature", strings.TrimSuffix(good, signature) + ".", "signature is wrong"},
		{"a signature of zeros", strings.TrimSuffix(good, signature) + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)), "signature is wrong"},
		{"two parts", strings.TrimSuffix(good, signature), "not a JWT"},
		{"four parts", good + ".x", "not a JWT"},
		{"a token in a token", key.SignText(t, good, nil), "its claims"},
		{"an encrypted token", jwe, "not a JWT"},
		{"JSON instead of the compact form", string(both), "not a JWT"},
		{"a space in it", good[:20] + " " + good[20:], "not a JWT"},
		{"a line break behind it", good + "\n", "not a JWT"},
		{"an unknown critical header", key.Sign(t, h.issuer.Claims(nil), map[string]any{"crit": []string{"x"}, "x": 1}), "signature is wrong"},
		{"a header of 16 KiB", key.Sign(t, h.issuer.Claims(nil), map[string]any{"x": strings.Repeat("x", oidc.MaxToken)}), "at most 16384 are accepted"},
		{"claims of 1 MB", key.Sign(t, h.issuer.Claims(map[string]any{"x": strings.Repeat("x", 1<<20)}), nil), "at most 16384 are accepted"},
		{"deep claims", key.SignText(t, strings.Repeat("[", 8000), nil), "its claims"},
		{"nothing", "", "not a JWT"},
		{"dots", strings.Repeat(".", 5000), "not a JWT"},
	} {
		h.want(t, tt.name, tt.token, tt.want)
	}
	h.want(t, "the token of the issuer again", good, "ada@corp")
}

// TestKeysInHeadersAreIgnored sends tokens that bring their own key, and one of another issuer with
// the same key id. Nothing that a token names is fetched.
func TestKeysInHeadersAreIgnored(t *testing.T) {
	h := start(t, nil)
	var fetched atomic.Int32
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetched.Add(1) }))
	t.Cleanup(trap.Close)
	key := h.issuer.Key()
	evil := oidctest.NewKey(t, key.ID)
	own := jose.JSONWebKey{Key: evil.Private.Public(), KeyID: key.ID, Algorithm: string(jose.ES256)}
	for _, headers := range []map[string]any{
		{"jwk": own},
		{"jku": trap.URL},
		{"x5u": trap.URL},
		{"jku": trap.URL, "jwk": own},
	} {
		h.want(t, "another's key", evil.Sign(t, h.issuer.Claims(nil), headers), "signature is wrong")
		h.want(t, "the issuer's key", key.Sign(t, h.issuer.Claims(nil), headers), "ada@corp")
	}
	for _, id := range []string{trap.URL, "../../etc/passwd", "' OR 1=1 --", strings.Repeat("k", 4000), "\x00"} {
		evil.ID = id
		h.want(t, "the key id "+id[:min(2, len(id))], evil.Sign(t, h.issuer.Claims(nil), nil), "no key")
	}
	if n := fetched.Load(); n != 0 {
		t.Errorf("%d addresses in tokens were fetched", n)
	}

	partner := oidctest.Start(t)
	partner.Now = h.clock.now
	if partner.Key().ID != key.ID {
		t.Fatalf("the issuers have the key ids %q and %q, want the same", partner.Key().ID, key.ID)
	}
	h.Replace([]oidc.Issuer{h.issuer.Settings("corp"), partner.Settings("partner")})
	h.want(t, "a token of the partner", partner.Token(t, nil), "ada@partner")
	h.want(t, "the partner as if it were corp", partner.Token(t, map[string]any{"iss": h.issuer.URL}), "signature is wrong")
	h.want(t, "corp as if it were the partner", h.issuer.Token(t, map[string]any{"iss": partner.URL}), "signature is wrong")
}

// decoded returns the header and the claims of a token.
func decoded(token string) (all string) {
	for _, part := range strings.Split(token, ".")[:2] {
		text, _ := base64.RawURLEncoding.DecodeString(part)
		all += string(text) + "\n"
	}
	return all
}

// FuzzVerify changes a valid token: no other text has a user.
func FuzzVerify(f *testing.F) {
	h := start(f, nil)
	good := h.issuer.Token(f, nil)
	if caller, err := h.Verify(f.Context(), good); err != nil || caller.User != "ada@corp" {
		f.Fatalf("Verify = %+v, %v", caller, err)
	}
	parts := strings.Split(good, ".")
	f.Add(0, "")
	f.Add(10, "A")
	f.Add(len(parts[0])+5, "eyJ")
	f.Add(len(good)-3, ".")
	f.Add(len(good), "=")
	f.Fuzz(func(t *testing.T, at int, with string) {
		if at < 0 || at > len(good) {
			return
		}
		changed := good[:at] + with + good[min(len(good), at+len(with)):]
		caller, err := h.Verify(t.Context(), changed)
		// The last letter of a part may have bits that mean nothing.
		if err == nil && decoded(changed) != decoded(good) {
			t.Errorf("Verify(%q) = %+v", changed, caller)
		}
	})
}
