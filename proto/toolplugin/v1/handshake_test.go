package toolpluginv1

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"strings"
	"testing"
	"time"
)

// certificateFor makes the last field of a handshake.
func certificateFor(t *testing.T, names ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawStdEncoding.EncodeToString(der)
}

func TestCheckHandshake(t *testing.T) {
	cert := certificateFor(t, "localhost")
	for _, tt := range []struct{ name, line, want string }{
		{"good", "1|1|unix|/run/d/s|grpc|" + cert, ""},
		{"good, with multiplexing", "1|1|unix|/run/d/s|grpc|" + cert + "|true", ""},
		{"short", "1|1|unix", "speaks \"\", expected grpc"},
		{"another core", "2|1|unix|/run/d/s|grpc|" + cert, `core protocol "2"`},
		{"another version", "1|2|unix|/run/d/s|grpc|" + cert, `version "2" of the plugin contract, expected 1`},
		{"another network", "1|1|tcp|127.0.0.1:1|grpc|" + cert, `listens on "tcp"`},
		{"another socket", "1|1|unix|/run/docker.sock|grpc|" + cert, "expected one in the directory"},
		{"a socket above", "1|1|unix|/run/d/../s|grpc|" + cert, "expected one in the directory"},
		{"a socket below", "1|1|unix|/run/d/e/s|grpc|" + cert, "expected one in the directory"},
		{"an abstract socket", "1|1|unix|@s|grpc|" + cert, "expected one in the directory"},
		{"no TLS", "1|1|unix|/run/d/s|grpc|", "has no certificate"},
		{"padded certificate", "1|1|unix|/run/d/s|grpc|AAA=", "not base64 without padding"},
		{"no certificate", "1|1|unix|/run/d/s|grpc|AAAA", "not X.509"},
		{"another name", "1|1|unix|/run/d/s|grpc|" + certificateFor(t, "example"), "not for the DNS name localhost"},
		{"control characters", "1|1|\x1b[2J|/run/d/s|grpc|" + cert, `listens on "\x1b[2J"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			faults := CheckHandshake(tt.line, "/run/d")
			found := tt.want == "" && len(faults) == 0
			for _, f := range faults {
				found = found || tt.want != "" && strings.Contains(f.Text, tt.want)
			}
			if !found {
				t.Errorf("CheckHandshake(%q) = %q, want %q", tt.line, faults, tt.want)
			}
		})
	}
}

func FuzzHandshake(f *testing.F) {
	f.Add("1|1|unix|/run/d/s|grpc|AAAA")
	f.Add("1|")
	f.Fuzz(func(t *testing.T, line string) {
		if IsHandshake(line) && CheckHandshake(line, "/run/d") == nil && !strings.HasPrefix(line, "1|1|unix|") {
			t.Errorf("CheckHandshake(%q) = nil", line)
		}
	})
}
