package client_test

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth/certificate"
	"github.com/toolhost/toolhost/host/internal/auth/certificate/certtest"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

const month = 30 * 24 * time.Hour

// TestOrigin: what is more than an address is refused, and plain HTTP to another machine.
func TestOrigin(t *testing.T) {
	for _, tt := range []struct{ address, want, says string }{
		{"https://Tools.Example.com", "https://tools.example.com", ""},
		{"https://tools.example.com:443/", "https://tools.example.com", ""},
		{"https://tools.example.com:7780", "https://tools.example.com:7780", ""},
		{"https://[2001:DB8::1]:443", "https://[2001:db8::1]", ""},
		{"https://[::1]:1", "https://[::1]:1", ""},
		{"HTTP://127.0.0.1:7780", "http://127.0.0.1:7780", ""},
		{"http://127.9.9.9:80", "http://127.9.9.9", ""},
		{"http://localhost:7780", "http://localhost:7780", ""},
		{"http://[::1]:7780", "http://[::1]:7780", ""},
		{"http://tools.example.com", "", "use https"},
		{"http://10.0.0.1:7780", "", "use https"},
		{"http://127.0.0.1.evil.example", "", "use https"},
		{"http://localhost.evil.example", "", "use https"},
		{"http://0.0.0.0:7780", "", "use https"},
		{"https://a@tools.example.com", "", "no user and no password"},
		{"https://th_secret:x@tools.example.com", "", "no user and no password"},
		{"https://tools.example.com/v1", "", "more than an address"},
		{"https://tools.example.com?x=1", "", "more than an address"},
		{"https://tools.example.com?", "", "more than an address"},
		{"https://tools.example.com#x", "", "more than an address"},
		{"https://tools.example.com#", "", "more than an address"},
		{"https://", "", "not the address of a host"},
		{"https://:7780", "", "not the address of a host"},
		{"https://tools.example.com:", "", "not the address of a host"},
		{"https://tools.example.com:x", "", "not the address of a host"},
		{"tools.example.com", "", "not the address of a host"},
		{"ftp://tools.example.com", "", "not the address of a host"},
		{"", "", "not the address of a host"},
		{"https://a\nb", "", "not the address of a host"},
	} {
		got, err := client.Origin(tt.address)
		if got != tt.want || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("Origin(%q) = %q, %v; want %q, %q", tt.address, got, err, tt.want, tt.says)
		}
		if err != nil && strings.Contains(err.Error(), "th_secret") {
			t.Errorf("Origin(%q): %v shows the password", tt.address, err)
		}
	}
}

// FuzzOrigin: an origin is its own, and never plain HTTP to another machine.
func FuzzOrigin(f *testing.F) {
	for _, seed := range []string{"https://a.example:1", "http://[::1]:80/", "http://localhost#", "https://%61", "http://127.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		origin, err := client.Origin(address)
		if err != nil {
			return
		}
		if again, err := client.Origin(origin); err != nil || again != origin {
			t.Errorf("Origin(%q) = %q, of which it is %q, %v", address, origin, again, err)
		}
	})
}

// secured starts a host with TLS, and returns the authority of its certificate.
func secured(t *testing.T, until time.Time, names ...string) (*httpapitest.Host, *certtest.Authority) {
	t.Helper()
	authority := certtest.New(t)
	r, err := certificate.NewReloader(authority.Write(t, t.TempDir(), until, names...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return httpapitest.Start(t, httpapitest.Options{TLS: r.TLS()}), authority
}

// TestRemote: over TLS a client does what it does elsewhere, also streams.
func TestRemote(t *testing.T) {
	h, authority := secured(t, time.Now().Add(month))
	agent := newClient(t, client.Options{URL: h.URL, Token: h.Agent, CA: authority.PEM})
	if got, err := agent.Call(t.Context(), client.Call{Tool: "look"}); err != nil || got.Status != client.Success {
		t.Errorf("Call = %+v, %v", got, err)
	}
	for e, err := range agent.Events(t.Context(), "") {
		if err != nil || e.ID == "" {
			t.Errorf("Events = %+v, %v", e, err)
		}
		break
	}
	who, err := newClient(t, client.Options{URL: h.URL, Token: h.BothApprover, CA: authority.PEM}).Identity(t.Context())
	if err != nil || who.User != httpapitest.Ann || strings.Join(who.Roles, ",") != "approver" || who.Token != "both-approver" || strings.Join(who.Approves, ",") != httpapitest.Bob {
		t.Errorf("Identity = %+v, %v", who, err)
	}
}

// TestRemoteIsNotTrusted: a client whose host is not proven says why, and sends it nothing.
func TestRemoteIsNotTrusted(t *testing.T) {
	plain := httpapitest.Start(t, httpapitest.Options{})
	good, authority := secured(t, time.Now().Add(month))
	expired, ofExpired := secured(t, time.Now().Add(-time.Hour))
	other, ofOther := secured(t, time.Now().Add(month), "tools.example.com")
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.Config.ErrorLog = hclog.NewNullLogger().StandardLogger(nil)
	old.StartTLS()
	t.Cleanup(old.Close)
	for _, tt := range []struct {
		name, url, ca, says string
	}{
		{"an unknown authority", good.URL, "", "of an authority that is not trusted here"},
		{"another authority", good.URL, ofOther.PEM, "of an authority that is not trusted here"},
		{"expired", expired.URL, ofExpired.PEM, "expired at "},
		{"other names", other.URL, ofOther.PEM, "is for other names"},
		{"no TLS", strings.Replace(plain.URL, "http:", "https:", 1), authority.PEM, "does not serve TLS"},
		{"TLS 1.1", old.URL, authority.PEM, "failed: remote error: tls: protocol version"},
	} {
		_, err := newClient(t, client.Options{URL: tt.url, Token: good.Agent, CA: tt.ca}).Tools(t.Context())
		if !errors.Is(err, client.ErrUntrusted) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
	if _, err := newClient(t, client.Options{URL: strings.Replace(good.URL, "https:", "http:", 1), Token: good.Agent}).Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "its address begins with https://") {
		t.Errorf("http to TLS: %v", err)
	}
	good.Stop()
	if _, err := newClient(t, client.Options{URL: good.URL, Token: good.Agent, CA: authority.PEM}).Tools(t.Context()); !errors.Is(err, client.ErrNoHost) || !strings.Contains(err.Error(), good.URL) {
		t.Errorf("no host: %v, want ErrNoHost with its address", err)
	}
	if _, err := client.New(client.Options{URL: good.URL, CA: "x"}); err == nil {
		t.Error("New accepts an authority that is none")
	}
}

// TestRemoteRedirect: no token follows a redirect.
func TestRemoteRedirect(t *testing.T) {
	var asked atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(thief.Close)
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		server := httptest.NewServer(http.RedirectHandler(thief.URL+"/v1/tools", status))
		t.Cleanup(server.Close)
		c := newClient(t, client.Options{URL: server.URL, Token: "th_secret"})
		if _, err := c.Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "not an answer of toolhost") {
			t.Errorf("%d: %v", status, err)
		}
		if _, err := c.Call(t.Context(), client.Call{Tool: "x"}); err == nil {
			t.Errorf("%d: a call succeeds", status)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests followed a redirect", asked.Load())
	}
}

// TestLogins: a token is for one host, and for this account.
func TestLogins(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config", "logins")
	const origin = "https://tools.example.com:7780"
	want := client.Login{URL: origin, Token: "th_1", CA: "ca"}
	if _, err := client.ReadLogin(dir, origin); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadLogin of nothing: %v", err)
	}
	for _, token := range []string{"th_0", "th_1"} {
		want.Token = token
		if err := client.SaveLogin(dir, want); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := client.ReadLogin(dir, origin); err != nil || got != want {
		t.Errorf("ReadLogin = %+v, %v; want %+v", got, err, want)
	}
	for _, other := range []string{"https://tools.example.com", "http://tools.example.com:7780", "https://example.com:7780"} {
		if _, err := client.ReadLogin(dir, other); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("ReadLogin of %s: %v", other, err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%d files, %v; want one", len(files), err)
	}
	path := filepath.Join(dir, files[0].Name())
	for name, mode := range map[string]os.FileMode{dir: 0o700, path: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), mode)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		damage func() error
		says   string
	}{
		{"others can read it", func() error { return os.Chmod(path, 0o640) }, "others can open the login"},
		{"cut off", func() error { return os.WriteFile(path, text[:20], 0o600) }, "is damaged"},
		{"empty", func() error { return os.WriteFile(path, nil, 0o600) }, "is damaged"},
		{"of another host", func() error {
			return os.WriteFile(path, []byte(`{"url":"https://evil.example","token":"th_1"}`), 0o600)
		}, "is damaged"},
		{"a link", func() error { return errors.Join(os.Rename(path, path+"x"), os.Symlink(path+"x", path)) }, "symbolic link"},
	} {
		if err := errors.Join(os.Remove(path), os.WriteFile(path, text, 0o600), tt.damage()); err != nil {
			t.Fatal(err)
		}
		if _, err := client.ReadLogin(dir, origin); err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "th_1") {
			t.Errorf("ReadLogin of one that is %s: %v, want %q", tt.name, err, tt.says)
		}
	}
	if err := client.RemoveLogin(dir, origin); err != nil {
		t.Error(err)
	}
	if err := client.RemoveLogin(dir, origin); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("RemoveLogin of nothing: %v", err)
	}
}
