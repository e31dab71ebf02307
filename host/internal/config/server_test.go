package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth/certificate/certtest"
	"github.com/toolhost/toolhost/host/internal/config"
)

// loadServed reads a configuration whose directory has a certificate until a time, in cert.pem and
// key.pem. damage changes the directory before; nil leaves it.
func loadServed(t *testing.T, until time.Time, damage func(dir string), text string) (*config.Config, string, error) {
	t.Helper()
	dir := write(t, map[string]string{"config.hcl": "workspace = \"ws\"\n" + text})
	if err := os.Mkdir(filepath.Join(dir, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	certtest.New(t).Write(t, dir, until)
	if damage != nil {
		damage(dir)
	}
	t.Chdir(dir)
	cfg, err := config.Load("config.hcl", config.LoadOptions{LookupEnv: environment(map[string]string{"HOME": dir})})
	return cfg, dir, err
}

const tlsBlock = "tls {\n cert = \"cert.pem\"\n key = \"key.pem\"\n}\n"

// TestListenBeyondThisMachine: TLS or an explicit word.
func TestListenBeyondThisMachine(t *testing.T) {
	for _, tt := range []struct {
		name, server, listen string
		warning, mistake     string
	}{
		{"TLS", "listen = \"0.0.0.0:7780\"\n" + tlsBlock, "0.0.0.0:7780", "", ""},
		{"all addresses", "listen = \":7780\"\n" + tlsBlock, "[::]:7780", "", ""},
		{"one address", "listen = \"10.0.0.1:7780\"\n" + tlsBlock, "10.0.0.1:7780", "", ""},
		{"TLS for this machine", tlsBlock, "127.0.0.1:7780", "", ""},
		{"without TLS", "listen = \":7780\"\n", "", "", "config.hcl:3: Not a loopback address"},
		{"said to be safe", "listen = \"10.0.0.1:7780\"\ninsecure_listen = true\n", "10.0.0.1:7780", "config.hcl:4: insecure_listen: 10.0.0.1:7780 has no TLS", ""},
		{"accepted", "listen = \"10.0.0.1:7780\"\ninsecure_listen = true # accept: listen\n", "10.0.0.1:7780", "", ""},
		{"said to be unsafe", "listen = \"10.0.0.1:7780\"\ninsecure_listen = false\n", "", "", "Not a loopback address"},
		{"mapped to IPv6", "listen = \"[::ffff:10.0.0.1]:7780\"\n", "", "", "Not a loopback address"},
		{"needless", "insecure_listen = true\n", "127.0.0.1:7780", "config.hcl:3: insecure_listen has no effect", ""},
		{"needless with TLS", "listen = \":1\"\ninsecure_listen = true\n" + tlsBlock, "[::]:1", "config.hcl:4: insecure_listen has no effect", ""},
		{"TLS without HTTP", "listen = \"\"\n" + tlsBlock, "", "config.hcl:4: tls has no effect", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, _, err := loadServed(t, time.Now().Add(90*24*time.Hour), nil, "server {\n"+tt.server+"}\n")
			if tt.mistake != "" {
				if err == nil || !strings.Contains(err.Error(), tt.mistake) {
					t.Errorf("Load: %v, want %q", err, tt.mistake)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(cfg.Unaccepted(nil, true), "\n")
			if cfg.Listen != tt.listen || (got == "") != (tt.warning == "") || !strings.Contains(got, tt.warning) {
				t.Errorf("Load: Listen = %q with warnings %q, want %q and %q", cfg.Listen, got, tt.listen, tt.warning)
			}
		})
	}
}

// TestTLS: every file that the host could not serve is a mistake; an expired certificate and an
// open key are warnings.
func TestTLS(t *testing.T) {
	remove := func(name string) func(string) {
		return func(dir string) { _ = os.Remove(filepath.Join(dir, name)) }
	}
	put := func(name, text string) func(string) {
		return func(dir string) { _ = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	in := func(days int) time.Time { return time.Now().Add(time.Duration(days) * 24 * time.Hour) }
	for _, tt := range []struct {
		name             string
		until            time.Time
		damage           func(dir string)
		server           string
		warning, mistake string
	}{
		{"fine", in(90), nil, tlsBlock, "", ""},
		{"expires soon", in(3), nil, tlsBlock, "config.hcl:4: cert: the TLS certificate expires at", ""},
		{"expired", in(-1), nil, tlsBlock, "config.hcl:4: cert: the TLS certificate expired at", ""},
		{"an open key", in(90), func(dir string) { _ = os.Chmod(filepath.Join(dir, "key.pem"), 0o644) }, tlsBlock, "config.hcl:5: key: other accounts can open", ""},
		{"no file", in(90), remove("cert.pem"), tlsBlock, "", "config.hcl:3: Unusable certificate: read the certificate:"},
		{"no key file", in(90), remove("key.pem"), tlsBlock, "", "read the key:"},
		{"an empty file", in(90), put("key.pem", ""), tlsBlock, "", "key.pem is empty"},
		{"no pair", in(90), put("key.pem", "x"), tlsBlock, "", "cannot be used together"},
		{"a directory", in(90), nil, "tls {\n cert = \"ws\"\n key = \"key.pem\"\n}\n", "", "is a directory"},
		{"no key", in(90), nil, "tls {\n cert = \"cert.pem\"\n}\n", "", "config.hcl:3: Missing key"},
		{"no certificate", in(90), nil, "tls {\n cert = \"\"\n key = \"key.pem\"\n}\n", "", "config.hcl:3: Missing cert"},
		{"a number", in(90), nil, "tls {\n cert = 5\n key = \"key.pem\"\n}\n", "", "config.hcl:4: Wrong type"},
		{"twice", in(90), nil, tlsBlock + tlsBlock, "", "Duplicate block"},
		{"a key in the workspace", in(90), func(dir string) {
			_ = os.Rename(filepath.Join(dir, "key.pem"), filepath.Join(dir, "ws", "key.pem"))
		}, "tls {\n cert = \"cert.pem\"\n key = \"ws/key.pem\"\n}\n", "", "config.hcl:5: Key in the workspace"},
		{"a link to it", in(90), func(dir string) {
			_ = os.Rename(filepath.Join(dir, "key.pem"), filepath.Join(dir, "ws", "key.pem"))
			_ = os.Symlink("ws/key.pem", filepath.Join(dir, "key.pem"))
		}, tlsBlock, "", "Key in the workspace"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, dir, err := loadServed(t, tt.until, tt.damage, "server {\n"+tt.server+"}\n")
			if tt.mistake != "" {
				if err == nil || !strings.Contains(err.Error(), tt.mistake) {
					t.Errorf("Load: %v, want %q", err, tt.mistake)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if cfg.TLS.Cert != filepath.Join(dir, "cert.pem") || cfg.TLS.Key != filepath.Join(dir, "key.pem") {
				t.Errorf("TLS = %+v, want the files beside the configuration", cfg.TLS)
			}
			got := strings.Join(cfg.Unaccepted(nil, true), "\n")
			if (got == "") != (tt.warning == "") || !strings.Contains(got, tt.warning) {
				t.Errorf("warnings %q, want %q", got, tt.warning)
			}
		})
	}
}

// TestPrivatePaths: no call and no plugin reaches the key, or the user's tokens for other hosts.
func TestPrivatePaths(t *testing.T) {
	const plugin = "plugin \"a\" {\n path = \"/bin/true\"\n tier = \"read_only\"\n sandbox {\n filesystem {\n read = [\"%s\"]\n}\n}\n}\n"
	with := func(read string) string {
		return "state_dir = \"state\"\nserver {\n" + tlsBlock + "}\n" + strings.Replace(plugin, "%s", read, 1)
	}
	until := time.Now().Add(90 * 24 * time.Hour)
	for read, hides := range map[string]bool{"/usr/share": false, ".config": true, ".config/toolhost": true} {
		cfg, dir, err := loadServed(t, until, nil, with(read))
		if err != nil {
			t.Fatal(err)
		}
		key, logins := filepath.Join(dir, "key.pem"), filepath.Join(dir, ".config/toolhost/logins")
		if !slices.Contains(cfg.Policy.Hidden, key) || !slices.Contains(cfg.Policy.Hidden, logins) || !slices.Contains(cfg.Protected, filepath.Join(dir, "cert.pem")) {
			t.Errorf("calls: %q, protected: %q; want key and logins hidden, and the certificate protected", cfg.Policy.Hidden, cfg.Protected)
		}
		if got := slices.Contains(cfg.Plugins[0].Supervisor.Forbidden, logins); got != hides {
			t.Errorf("a plugin that reads %s: %q is hidden from it", read, cfg.Plugins[0].Supervisor.Forbidden)
		}
	}
	for read, want := range map[string]string{"key.pem": "Path of the TLS key", "tls": "Path of the TLS key", ".config/toolhost/logins/x.json": "Path of the logins"} {
		_, _, err := loadServed(t, until, func(dir string) {
			_ = os.Mkdir(filepath.Join(dir, "tls"), 0o700)
			_ = os.Rename(filepath.Join(dir, "key.pem"), filepath.Join(dir, "tls", "key.pem"))
			_ = os.Symlink("tls/key.pem", filepath.Join(dir, "key.pem"))
		}, with(read))
		if err == nil || !strings.Contains(err.Error(), "config.hcl:14: "+want) {
			t.Errorf("Load with read = [%q]: %v, want a mistake", read, err)
		}
	}
}

func TestHosts(t *testing.T) {
	for _, tt := range []struct {
		list    string
		want    []string
		mistake string
	}{
		{`[]`, nil, ""},
		{`["Tools.Example.com", "10.0.0.1", "::ffff:10.0.0.2", "fe80::1"]`, []string{"tools.example.com", "10.0.0.1", "10.0.0.2", "fe80::1"}, ""},
		{`["https://tools.example.com"]`, nil, "Not a host name"},
		{`["tools.example.com:443"]`, nil, "Not a host name"},
		{`["*.example.com"]`, nil, "Not a host name"},
		{`["tools.example.com/"]`, nil, "Not a host name"},
		{`["fe80::1%eth0"]`, nil, "Not a host name"},
		{`[""]`, nil, "Not a host name"},
		{`["a.example", "A.example"]`, nil, "Duplicate host"},
		{`"a.example"`, nil, "Wrong type"},
	} {
		cfg, _, err := loadServed(t, time.Now(), nil, "server {\nhosts = "+tt.list+"\n}\n")
		switch {
		case tt.mistake != "" && (err == nil || !strings.Contains(err.Error(), "config.hcl:3: "+tt.mistake)):
			t.Errorf("Load with hosts = %s: %v, want %q", tt.list, err, tt.mistake)
		case tt.mistake == "" && (err != nil || !slices.Equal(cfg.Hosts, tt.want)):
			t.Errorf("Load with hosts = %s: %v, want %q", tt.list, err, tt.want)
		}
	}
}

// TestReloadOfTLS: other files take effect, TLS itself takes a restart.
func TestReloadOfTLS(t *testing.T) {
	until := time.Now().Add(90 * 24 * time.Hour)
	with, _, err := loadServed(t, until, nil, "server {\n"+tlsBlock+"}\n")
	if err != nil {
		t.Fatal(err)
	}
	other, without := *with, *with
	other.TLS.Cert, without.TLS.Cert, without.TLS.Key = "/other.pem", "", ""
	if err := with.CheckReload(&other); err != nil {
		t.Errorf("CheckReload of other files: %v", err)
	}
	for _, pair := range [][2]*config.Config{{with, &without}, {&without, with}} {
		if err := pair[0].CheckReload(pair[1]); err == nil || !strings.Contains(err.Error(), "server.tls cannot be added or removed by a reload") {
			t.Errorf("CheckReload: %v, want a refusal", err)
		}
	}
}
