package auth

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// TestTCPListener finds the listener of this process, on one address and on all.
func TestTCPListener(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		port := netip.MustParseAddrPort(l.Addr().String()).Port()
		at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
		uid, pid, found := TCPListener(at)
		if !found || uid != os.Geteuid() || pid != os.Getpid() {
			t.Errorf("TCPListener(%s) of %s = %d, %d, %v; want this process", at, l.Addr(), uid, pid, found)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if uid, pid, found := TCPListener(at); found {
			t.Errorf("TCPListener(%s) of a closed listener = %d, %d", at, uid, pid)
		}
	}
}

// TestListenerIn reads tables of connections.
func TestListenerIn(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	row := func(local, state, uid string) string {
		return "   0: " + local + " 00000000:0000 " + state + " 00000000:00000000 00:00000000 00000000 " + uid + " 0 77 1\n"
	}
	for _, tt := range []struct {
		name, table string
		want        bool
	}{
		{"listens", head + row("0100007F:1E64", "0A", "1000"), true},
		{"on all addresses", head + row("00000000:1E64", "0A", "1000"), true},
		{"on another port", head + row("0100007F:1E65", "0A", "1000"), false},
		{"on another address", head + row("0200007F:1E64", "0A", "1000"), false},
		{"connected", head + row("0100007F:1E64", "01", "1000"), false},
		{"a strange uid", head + row("0100007F:1E64", "0A", "x"), false},
		{"a strange address", head + row("0100007F", "0A", "1000"), false},
		{"no table", "\x00\n0A", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, found := listenerIn(strings.NewReader(tt.table), netip.MustParseAddrPort("127.0.0.1:7780"))
			if want := (end{1000, "77"}); found != tt.want || found && got != want {
				t.Errorf("listenerIn() = %v, %v; want %v", got, found, tt.want)
			}
		})
	}
}
