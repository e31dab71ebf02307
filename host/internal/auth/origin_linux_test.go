package auth

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// TestTCPOrigin checks all kinds of addresses that the two ends may use.
func TestTCPOrigin(t *testing.T) {
	for _, tt := range []struct{ listen, network, dial string }{
		{"127.0.0.1:0", "tcp4", "127.0.0.1"},
		{"127.0.0.1:0", "tcp", "::ffff:127.0.0.1"},
		{"[::1]:0", "tcp6", "::1"},
	} {
		t.Run(tt.listen+" from "+tt.dial, func(t *testing.T) {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", tt.listen)
			if err != nil {
				if strings.Contains(tt.listen, "::1") && !hasLoopback6() {
					return // no IPv6 here
				}
				t.Fatal(err)
			}
			defer listener.Close()
			_, port, _ := net.SplitHostPort(listener.Addr().String())
			client, err := (&net.Dialer{}).DialContext(t.Context(), tt.network, net.JoinHostPort(tt.dial, port))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			conn, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if uid, err := TCPOrigin(conn); err != nil || uid != os.Geteuid() {
				t.Errorf("TCPOrigin = %d, %v; want %d", uid, err, os.Geteuid())
			}
			// The kernel shows a closed socket as root's.
			client.Close()
			if uid, err := TCPOrigin(conn); err == nil {
				t.Errorf("TCPOrigin of a connection that the client has closed = %d, want an error", uid)
			}
		})
	}
}

// TestResetConnection checks that a reset connection is not mistaken for the next one from the
// same port.
func TestResetConnection(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	connect := func(from net.Addr) (client *net.TCPConn, accepted net.Conn) {
		t.Helper()
		conn, err := (&net.Dialer{LocalAddr: from}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if accepted, err = listener.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = conn.Close(), accepted.Close() })
		return conn.(*net.TCPConn), accepted
	}
	client, first := connect(nil)
	if err := client.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil { // with a reset
		t.Fatal(err)
	}
	_, second := connect(client.LocalAddr())
	if uid, err := TCPOrigin(second); err != nil || uid != os.Geteuid() {
		t.Errorf("TCPOrigin of the second connection = %d, %v; want %d", uid, err, os.Geteuid())
	}
	if uid, err := TCPOrigin(first); err == nil {
		t.Errorf("TCPOrigin of the connection that was reset = %d, that of the next one from its port", uid)
	}
}

func TestCheckOrigins(t *testing.T) {
	if err := CheckOrigins(); err != nil {
		t.Errorf("CheckOrigins() = %v, want nil where connections have owners", err)
	}
}

func hasLoopback6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}

func TestOwnerOf(t *testing.T) {
	from, to := netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("127.0.0.1:7780")
	const header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	row := func(state, uid, inode string) string {
		return "   0: " + tableText(t, "0100007F:9C40") + " " + tableText(t, "0100007F:1E64") + " " + state +
			" 00000000:00000000 00:00000000 00000000 " + uid + "        0 " + inode + " 1 0000000000000000 20 4 30 10 -1\n"
	}
	for _, tt := range []struct {
		name, table string
		uid         int
		found       bool
	}{
		{"open", header + row("01", "1000", "77"), 1000, true},
		{"half closed", header + row("05", "1000", "77"), 1000, true},
		{"closed by its process", header + row("05", "0", "0"), 0, false},
		{"only trying to connect", header + row("02", "0", "77"), 0, false},
		{"waiting", header + row("06", "0", "0"), 0, false},
		{"none", header, 0, false},
		{"cut", header + "   0: 0100007F:9C40 0100", 0, false},
	} {
		one, found, err := endIn(strings.NewReader(tt.table), from, to)
		if one.uid != tt.uid || found != tt.found || err != nil {
			t.Errorf("%s: endIn = %d, %v, %v; want %d, %v", tt.name, one.uid, found, err, tt.uid, tt.found)
		}
	}
}

// tableText converts an address of a little-endian machine to this machine's byte order.
func tableText(t *testing.T, little string) string {
	t.Helper()
	if a, _ := tableAddress(little); a.Addr() == netip.MustParseAddr("127.0.0.1") {
		return little
	}
	return "7F000001" + little[8:]
}
