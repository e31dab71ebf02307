package sdk

import (
	"net"
	"strings"
	"testing"
)

// TestWriteHandshake shows the line that a host reads, with the further field
// for a host that asks for it.
func TestWriteHandshake(t *testing.T) {
	for _, tt := range []struct {
		name, multiplex string
		certificate     []byte
		want            string
	}{
		{"with a certificate", "", []byte{1, 2}, "1|1|unix|/run/p.sock|grpc|AQI\n"},
		{"without", "", nil, "1|1|unix|/run/p.sock|grpc|\n"},
		{"a further field", "true", []byte{1, 2}, "1|1|unix|/run/p.sock|grpc|AQI|true\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PLUGIN_MULTIPLEX_GRPC", tt.multiplex)
			var host strings.Builder
			writeHandshake(&host, &net.UnixAddr{Net: "unix", Name: "/run/p.sock"}, tt.certificate)
			if host.String() != tt.want {
				t.Errorf("host reads %q, want %q", host.String(), tt.want)
			}
		})
	}
}
