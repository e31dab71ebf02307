package daemon_test

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/certificate/certtest"
	"github.com/toolhost/toolhost/host/internal/daemon"
)

// TestReloadOfCertificate: a reload names other files, at once; the URL has a name that the
// certificate covers.
func TestReloadOfCertificate(t *testing.T) {
	t.Parallel()
	authority, in := certtest.New(t), t.TempDir()
	until := time.Now().Add(90 * 24 * time.Hour)
	block := func(name string) string {
		dir := filepath.Join(in, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		files := authority.Write(t, dir, until, name)
		return fmt.Sprintf("server {\n listen = \"127.0.0.1:0\"\n tls {\n cert = %q\n key = %q\n }\n}\n", files.Cert, files.Key)
	}
	first := block("a.example.com")
	cfg := loadWith(t, first)
	d := build(t, cfg)
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	address, err := d.ServeHTTP(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	names := func() string {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: authority.Pool, InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return strings.Join(conn.(*tls.Conn).ConnectionState().PeerCertificates[0].DNSNames, ",")
	}
	at, err := url.Parse(d.URL())
	if err != nil || at.Scheme != "https" || at.Hostname() != "a.example.com" || !strings.HasSuffix(address, ":"+at.Port()) {
		t.Errorf("URL() = %s at %s, %v", d.URL(), address, err)
	}
	if got := names(); got != "a.example.com" {
		t.Fatalf("the certificate is for %s", got)
	}
	text, err := os.ReadFile(cfg.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	reload := func(server string) error {
		if err := os.WriteFile(cfg.Files[0], []byte(strings.Replace(string(text), first, server, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		return d.Reload(t.Context(), "", auth.Caller{User: "ada"}, "cli")
	}
	if err := reload("server {\n listen = \"127.0.0.1:0\"\n}\n"); err == nil || !strings.Contains(err.Error(), "server.tls cannot be added or removed") {
		t.Errorf("Reload() without TLS = %v", err)
	}
	second := block("b.example.com")
	if err := reload(strings.Replace(second, "b.example.com/key.pem", "a.example.com/key.pem", 1)); err == nil || !strings.Contains(err.Error(), "cannot be used together") {
		t.Errorf("Reload() with the key of another = %v", err)
	}
	if got := names(); got != "a.example.com" {
		t.Errorf("after refused reloads the certificate is for %s", got)
	}
	if err := reload(second); err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "b.example.com" {
		t.Errorf("after a reload the certificate is for %s", got)
	}
}

// TestConfiguredURL: the address that clients get is one at which the host is reached and trusted.
func TestConfiguredURL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := certtest.New(t).Write(t, dir, time.Now().Add(90*24*time.Hour), "127.0.0.1", "*.example.com", "tools.example.com")
	tls := fmt.Sprintf("tls {\n cert = %q\n key = %q\n}\n", files.Cert, files.Key)
	for server, want := range map[string]string{
		"":                                 "http://127.0.0.1:7780",
		"listen = \"[::1]:1\"\n":           "http://[::1]:1",
		"listen = \"127.0.0.1:1\"\n" + tls: "https://127.0.0.1:1",
		"listen = \"127.0.0.2:1\"\n" + tls: "https://tools.example.com:1",
		"listen = \"10.0.0.1:1\"\n" + tls:  "https://tools.example.com:1",
		"listen = \":1\"\n" + tls:          "https://127.0.0.1:1",
		"listen = \":1\"\ninsecure_listen = true\nhosts = [\"a.example\"]\n": "http://a.example:1",
		"listen = \":1\"\ninsecure_listen = true\n":                          "http://127.0.0.1:1",
	} {
		got, err := daemon.ConfiguredURL(loadWith(t, "server {\n"+server+"}\n"))
		if err != nil || got != want {
			t.Errorf("ConfiguredURL with %q = %s, %v; want %s", server, got, err, want)
		}
	}
}
