package certificate_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth/certificate"
	"github.com/toolhost/toolhost/host/internal/auth/certificate/certtest"
)

const day = 24 * time.Hour

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReadRefuses: the error names the file that is wrong, and nothing of its content.
func TestReadRefuses(t *testing.T) {
	authority := certtest.New(t)
	for _, tt := range []struct {
		name   string
		damage func(files *certificate.Files)
		want   string
	}{
		{"no certificate", func(f *certificate.Files) { f.Cert += "x" }, "cert.pemx: no such file"},
		{"no key", func(f *certificate.Files) { f.Key += "x" }, "key.pemx: no such file"},
		{"an empty certificate", func(f *certificate.Files) { put(t, f.Cert, "") }, "cert.pem is empty"},
		{"an empty key", func(f *certificate.Files) { put(t, f.Key, "") }, "key.pem is empty"},
		{"a directory", func(f *certificate.Files) { f.Cert = filepath.Dir(f.Cert) }, "is a directory"},
		{"a device", func(f *certificate.Files) { f.Key = "/dev/null" }, "/dev/null is not a regular file"},
		{"half a certificate", func(f *certificate.Files) {
			text, _ := authority.Issue(t, time.Now().Add(90*day))
			put(t, f.Cert, text[:len(text)/2])
		}, "cannot be used together"},
		{"a large file", func(f *certificate.Files) { put(t, f.Cert, strings.Repeat("x", 1<<20)) }, "cert.pem is larger than"},
		{"the key of another", func(f *certificate.Files) {
			_, other := authority.Issue(t, time.Now().Add(90*day))
			put(t, f.Key, other)
		}, "private key does not match public key"},
		{"exchanged", func(f *certificate.Files) { f.Cert, f.Key = f.Key, f.Cert }, "cannot be used together"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := authority.Write(t, t.TempDir(), time.Now().Add(90*day))
			key, err := os.ReadFile(files.Key)
			if err != nil {
				t.Fatal(err)
			}
			tt.damage(&files)
			_, err = certificate.Read(files)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Read: %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), strings.Split(string(key), "\n")[1]) {
				t.Errorf("Read: %v shows the key", err)
			}
		})
	}
}

func TestNames(t *testing.T) {
	cert, err := certificate.Read(certtest.New(t).Write(t, t.TempDir(), time.Now().Add(90*day), "*.example.com", "tools.example.org", "10.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"tools.example.org": true, "a.example.com": true, "a.b.example.com": false, "example.com": false,
		"10.0.0.1": true, "10.0.0.2": false, "localhost": false, "": false, "tools.example.org.evil.example": false,
	} {
		if got := cert.Covers(name); got != want {
			t.Errorf("Covers(%q) = %v, want %v", name, got, want)
		}
	}
	if got := cert.Name(); got != "tools.example.org" {
		t.Errorf("Name() = %q, want the first one without a wildcard", got)
	}
}

// TestExpiry: the certificate expires while it is served.
func TestExpiry(t *testing.T) {
	end := time.Now().Add(90 * day).Truncate(time.Second)
	now := time.Now()
	r, err := certificate.NewReloader(certtest.New(t).Write(t, t.TempDir(), end), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		now  time.Time
		want string
	}{
		{end.Add(-90 * day), ""},
		{end.Add(-14*day - time.Second), ""},
		{end.Add(-14 * day), "in 15 days or less"},
		{end.Add(-36 * time.Hour), "in 2 days or less"},
		{end.Add(-time.Hour), "within a day"},
		{end, "expired at " + end.UTC().Format(time.RFC3339)},
		{end.Add(day), "expired at"},
		{end.Add(-1000 * day), "is not valid before"},
	} {
		now = tt.now
		got := strings.Join(r.Problems(), "; ")
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("Problems %v before the end = %q, want %q", end.Sub(tt.now), got, tt.want)
		}
	}
}

// TestRefresh: what cannot be used is told once and changes nothing; a new pair replaces the
// old one.
func TestRefresh(t *testing.T) {
	authority, dir := certtest.New(t), t.TempDir()
	files := authority.Write(t, dir, time.Now().Add(90*day))
	r, err := certificate.NewReloader(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := r.Certificate()
	refresh := func(what string, renews bool, fails string) {
		t.Helper()
		renewed, err := r.Refresh()
		if renewed != renews || (err == nil) != (fails == "") || err != nil && !strings.Contains(err.Error(), fails) {
			t.Errorf("Refresh with %s = %v, %v; want %v, %q", what, renewed, err, renews, fails)
		}
		if !renews && r.Certificate() != first {
			t.Errorf("Refresh with %s replaced the certificate", what)
		}
		if unusable := strings.Join(r.Problems(), "") == certificate.Unusable; !renews && fails != "" && !unusable {
			t.Errorf("Problems with %s = %q", what, r.Problems())
		}
	}
	refresh("the same files", false, "")
	cert, key := authority.Issue(t, time.Now().Add(91*day))
	old, err := os.ReadFile(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	put(t, files.Cert, cert[:100])
	refresh("half a certificate", false, "cannot be used together")
	refresh("half a certificate, again", false, "")
	put(t, files.Cert, cert)
	refresh("the new certificate with the old key", false, "does not match")
	refresh("the same again", false, "")
	put(t, files.Cert, string(old))
	refresh("the old pair", false, "")
	if got := r.Problems(); got != nil {
		t.Errorf("Problems of the old pair = %q", got)
	}
	if err := os.Remove(files.Cert); err != nil {
		t.Fatal(err)
	}
	refresh("no certificate", false, "no such file")
	put(t, files.Cert+".new", cert)
	put(t, files.Key+".new", key)
	for _, path := range []string{files.Cert, files.Key} {
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	refresh("the new pair", true, "")
	other := authority.Write(t, t.TempDir(), time.Now().Add(92*day))
	if renewed, err := r.Use(other); err != nil || !renewed {
		t.Errorf("Use of other files = %v, %v", renewed, err)
	}
}

// TestHandshake: connections stay when the certificate is replaced, new ones get the new one,
// and TLS 1.1 is refused.
func TestHandshake(t *testing.T) {
	authority, dir := certtest.New(t), t.TempDir()
	r, err := certificate.NewReloader(authority.Write(t, dir, time.Now().Add(90*day), "a.example.com"), nil)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() { // ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { // ends with its client
				defer conn.Close()
				secure := tls.Server(conn, r.TLS())
				text := make([]byte, 1)
				for {
					if _, err := secure.Read(text); err != nil {
						return
					}
					if _, err := secure.Write(text); err != nil {
						return
					}
				}
			}()
		}
	}()
	dial := func(name string, most uint16) (*tls.Conn, error) {
		conn, err := (&tls.Dialer{Config: &tls.Config{
			RootCAs: authority.Pool, ServerName: name, MinVersion: tls.VersionTLS10, MaxVersion: most,
		}}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			return nil, err
		}
		return conn.(*tls.Conn), nil
	}
	open, err := dial("a.example.com", tls.VersionTLS13)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	authority.Write(t, dir, time.Now().Add(90*day), "b.example.com")
	if renewed, err := r.Refresh(); !renewed || err != nil {
		t.Fatalf("Refresh = %v, %v", renewed, err)
	}
	if _, err := open.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := open.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection with the old certificate: %v", err)
	}
	if conn, err := dial("b.example.com", tls.VersionTLS12); err != nil {
		t.Errorf("a connection with the new certificate and TLS 1.2: %v", err)
	} else {
		_ = conn.Close()
	}
	var wrong x509.HostnameError
	if _, err := dial("a.example.com", tls.VersionTLS13); !errors.As(err, &wrong) {
		t.Errorf("a connection to the old name: %v, want an error about the name", err)
	}
	if _, err := dial("b.example.com", tls.VersionTLS11); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("a connection with TLS 1.1: %v, want it refused for its version", err)
	}
}

func TestOthersCanRead(t *testing.T) {
	files := certtest.New(t).Write(t, t.TempDir(), time.Now().Add(90*day))
	if _, open := certificate.OthersCanRead(files.Key); open {
		t.Error("a file of mode 0600 is reported")
	}
	for _, mode := range []os.FileMode{0o604, 0o640, 0o660} {
		if err := os.Chmod(files.Key, mode); err != nil {
			t.Fatal(err)
		}
		if got, open := certificate.OthersCanRead(files.Key); !open || got != mode {
			t.Errorf("OthersCanRead of mode %o = %o, %v", mode, got, open)
		}
	}
}
