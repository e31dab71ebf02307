package main

import (
	"net/netip"
	"testing"
)

// TestPortsToTry bounds the ports that a host tries.
func TestPortsToTry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		flag, configured string
		first, last      string
		count            int
	}{
		{"", "127.0.0.1:7780", "127.0.0.1:7780", "127.0.0.1:7780", 1},
		{"0", "[::1]:7780", "[::1]:0", "[::1]:0", 1},
		{"8000", "127.0.0.1:7780", "127.0.0.1:8000", "127.0.0.1:8000", 1},
		{"auto", "127.0.0.1:7780", "127.0.0.1:7780", "127.0.0.1:7800", 21},
		{"auto", "127.0.0.1:65530", "127.0.0.1:65530", "127.0.0.1:65535", 6},
		{"auto", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", 1},
	} {
		p, err := portsOf(&app{}, tt.flag)
		if err != nil {
			t.Fatal(err)
		}
		got := p.choose(netip.MustParseAddrPort(tt.configured))
		if len(got) != tt.count || got[0].String() != tt.first || got[len(got)-1].String() != tt.last {
			t.Errorf("--port %q of %s: %v, want %d from %s to %s", tt.flag, tt.configured, got, tt.count, tt.first, tt.last)
		}
	}
	for _, flag := range []string{"-1", "65536", "80x", "AUTO", " 1"} {
		if p, err := portsOf(&app{}, flag); err == nil {
			t.Errorf("--port %q = %+v, want an error", flag, p)
		}
	}
}
