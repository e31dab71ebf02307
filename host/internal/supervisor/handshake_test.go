package supervisor

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

func TestCheckHandshake(t *testing.T) {
	config, _, err := clientTLS(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert := base64.RawStdEncoding.EncodeToString(config.Certificates[0].Certificate[0])
	for _, tt := range []struct{ name, line, want string }{
		{"good", "1|1|unix|/run/d/s|grpc|" + cert, ""},
		{"good, with multiplexing", "1|1|unix|/run/d/s|grpc|" + cert + "|true", ""},
		{"short", "1|1|unix", "speaks \"\", expected grpc"},
		{"another core", "2|1|unix|/run/d/s|grpc|" + cert, "core protocol 2"},
		{"another version", "1|2|unix|/run/d/s|grpc|" + cert, "version 2 of the plugin contract, expected 1"},
		{"another network", "1|1|tcp|127.0.0.1:1|grpc|" + cert, `listens on "tcp"`},
		{"another socket", "1|1|unix|/run/docker.sock|grpc|" + cert, "expected one in the directory"},
		{"a socket above", "1|1|unix|/run/d/../s|grpc|" + cert, "expected one in the directory"},
		{"a socket below", "1|1|unix|/run/d/e/s|grpc|" + cert, "expected one in the directory"},
		{"an abstract socket", "1|1|unix|@s|grpc|" + cert, "expected one in the directory"},
		{"no TLS", "1|1|unix|/run/d/s|grpc|", "has no certificate"},
		{"padded certificate", "1|1|unix|/run/d/s|grpc|AAA=", "not unpadded base64"},
		{"no certificate", "1|1|unix|/run/d/s|grpc|AAAA", "not X.509"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := checkHandshake(tt.line, "/run/d")
			if tt.want == "" {
				if err != nil {
					t.Errorf("checkHandshake(%q) = %v, want none", tt.line, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("checkHandshake(%q) = %v, want %q", tt.line, err, tt.want)
			}
		})
	}
}

func FuzzHandshake(f *testing.F) {
	f.Add("1|1|unix|/run/d/s|grpc|AAAA")
	f.Add("1|")
	f.Fuzz(func(t *testing.T, line string) {
		if isHandshake(line) && checkHandshake(line, "/run/d") == nil && !strings.HasPrefix(line, "1|1|unix|") {
			t.Errorf("checkHandshake(%q) = nil", line)
		}
	})
}
