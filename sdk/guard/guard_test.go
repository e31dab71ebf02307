package guard_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/guard"
)

func newGuard(tb testing.TB, o guard.Options) *guard.Guard {
	tb.Helper()
	g, err := guard.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// isRefusal reports whether an error says that an address may not be contacted.
func isRefusal(err error) bool { return errors.As(err, new(*guard.RefusalError)) }

func TestAddress(t *testing.T) {
	g := newGuard(t, guard.Options{})
	d := guard.Dialer{Guard: g}
	for address, want := range map[string]bool{
		"93.184.215.14:80": true, "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443": true, "8.8.8.8:8443": true,
		"93.184.215.14:22": false, "93.184.215.14:0": false,
		"127.0.0.1:80": false, "127.255.255.254:80": false, "0.0.0.0:80": false, "10.0.0.1:80": false, "172.16.0.1:80": false, "172.31.255.255:80": false,
		"192.168.0.1:80": false, "169.254.169.254:80": false, "100.64.0.1:80": false, "192.0.0.192:80": false, "198.18.0.1:80": false,
		"198.51.100.1:80": false, "203.0.113.1:80": false, "224.0.0.1:80": false, "240.0.0.1:80": false, "255.255.255.255:80": false,
		"168.63.129.16:80": false, "100.100.100.200:80": false, "192.88.99.1:80": false,
		"[::1]:80": false, "[::]:80": false, "[::ffff:10.0.0.1]:80": false, "[::ffff:93.184.215.14]:80": true, "[fe80::1]:80": false,
		"[fc00::1]:80": false, "[fd00:ec2::254]:80": false, "[ff02::1]:80": false, "[2001:db8::1]:80": false, "[2002:7f00:1::]:80": false,
		"[64:ff9b::7f00:1]:80": false, "[64:ff9b:1::1]:80": false, "[2001:0:4136:e378::1]:80": false, "[::127.0.0.1]:80": false, "[100::1]:80": false,
		"[fec0::1]:80": false, "[3fff::1]:80": false, "[5f00::1]:80": false,
	} {
		err := g.Address(netip.MustParseAddrPort(address))
		if (err == nil) != want || err != nil && !isRefusal(err) {
			t.Errorf("%s: %v, want allowed %v", address, err, want)
		}
		network := "tcp4"
		if strings.HasPrefix(address, "[") {
			network = "tcp6"
		}
		if err := d.Control(network, address, nil); (err == nil) != want {
			t.Errorf("the socket to %s: %v, want allowed %v", address, err, want)
		}
	}
	if d.Control("udp4", "93.184.215.14:80", nil) == nil || d.Control("tcp4", "example.com:80", nil) == nil || d.Control("tcp6", "[2606:4700::1%eth0]:80", nil) == nil {
		t.Error("a socket is let through that is none of TCP, or to a name, or to a zone")
	}
	if g.Address(netip.AddrPort{}) == nil {
		t.Error("no address is an address")
	}
}

func TestPrivate(t *testing.T) {
	g := newGuard(t, guard.Options{Private: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/16"), netip.MustParsePrefix("fd12::/16")}, Ports: []int{80}})
	for address, want := range map[string]bool{
		"10.1.255.255:80": true, "10.2.0.0:80": false, "[fd12::1]:80": true, "[fd13::1]:80": false, "169.254.169.254:80": false, "10.1.0.1:81": false,
		"127.0.0.1:80": false, "[::ffff:10.1.0.1]:80": true,
	} {
		if err := g.Address(netip.MustParseAddrPort(address)); (err == nil) != want {
			t.Errorf("%s: %v, want allowed %v", address, err, want)
		}
	}
	for _, network := range []string{"fd20::/16", "fd00:c1::/48", "fd00:42::/32", "::ffff:10.0.0.0/104", "169.254.0.0/16", "169.254.169.254/32", "0.0.0.0/0", "fe80::/64", "fd00::/8", "::/0", "224.0.0.0/8", "100.64.0.0/10"} {
		if _, err := guard.New(guard.Options{Private: []netip.Prefix{netip.MustParsePrefix(network)}}); err == nil {
			t.Errorf("%s can be opened, with what is never contacted in it", network)
		}
	}
	if _, err := g.URL("http://wiki/page"); err != nil {
		t.Errorf("a private name: %v", err)
	}
}

func TestURL(t *testing.T) {
	g := newGuard(t, guard.Options{})
	for text, want := range map[string]string{
		"https://EXAMPLE.com:443/a?b=c#d":                   "https://example.com/a?b=c",
		"HTTP://example.com.:80":                            "http://example.com",
		"https://bücher.example/ü":                          "https://xn--bcher-kva.example/%C3%BC",
		"https://example.com:8443/":                         "https://example.com:8443/",
		"http://[2606:4700:0::1]/":                          "http://[2606:4700::1]/",
		"http://[2606:4700::1]:8080/":                       "http://[2606:4700::1]:8080/",
		"http://[::ffff:93.184.215.14]:8080/":               "http://93.184.215.14:8080/",
		"http://[::ffff:10.0.0.1]/":                         "",
		"https://a_b.example.com/":                          "https://a_b.example.com/",
		"https://example.com/a%20b":                         "https://example.com/a%20b",
		"https://1.example/":                                "https://1.example/",
		"https://example.com?q":                             "https://example.com?q",
		"http://example.com:8080":                           "http://example.com:8080",
		"http://example。com/":                               "http://example.com/",
		"http://１２７.0.0.1/":                                 "",
		"http://①②⑦.⓪.⓪.①/":                                 "",
		"http://127.0.0.1。/":                                "",
		"http://0177.0.0.1/":                                "",
		"http://2130706433/":                                "",
		"http://0x7f.1/":                                    "",
		"http://1.2.3.4.5/":                                 "",
		"http://example.0x1/":                               "",
		"http://[::1%25lo]/":                                "",
		"http://[::1]x/":                                    "",
		"http://example.com:/":                              "",
		"http://example.com:99999/":                         "",
		"http://example.com:080/":                           "http://example.com/",
		"http://exa mple.com/":                              "",
		"http://exam\tple.com/":                             "",
		"http://example.com\\.evil.com/":                    "",
		"http://example.com\x00/":                           "",
		"http://user@example.com/":                          "",
		"http://:@example.com/":                             "",
		"http://@example.com/":                              "",
		"//example.com/":                                    "",
		"example.com":                                       "",
		"/path":                                             "",
		"":                                                  "",
		"file:///etc/passwd":                                "",
		"javascript:alert(1)":                               "",
		"https://*.example.com/":                            "",
		"https://exa$mple.com/":                             "",
		"https://example.com.localhost/":                    "",
		"https://service.internal./":                        "",
		"https://" + strings.Repeat("a.", 130) + "example/": "",
		"https://" + strings.Repeat("a", 64) + ".example/":  "",
	} {
		u, err := g.URL(text)
		got := ""
		if err == nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
}

// An opened address stays closed if it leads to a closed one: a translation of addresses may be
// opened, for a machine that has no other way.
func TestTranslated(t *testing.T) {
	open := newGuard(t, guard.Options{Private: []netip.Prefix{
		netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
		netip.MustParsePrefix("::/64"), netip.MustParsePrefix("10.1.0.0/16"),
	}})
	for address, want := range map[string]bool{
		"64:ff9b::5db8:d70e": true, "64:ff9b::a01:203": true, "64:ff9b::a02:203": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b::7f00:1": false,
		"64:ff9b:1::a9fe:a9fe": false, "2002:5db8:d70e::1": true, "2002:a9fe:a9fe::1": false, "2002:a02:203::1": false,
		"::a9fe:a9fe": false, "::ffff:0:a9fe:a9fe": false, "::1": true,
	} {
		err := open.Address(netip.AddrPortFrom(netip.MustParseAddr(address), 80))
		if (err == nil) != want {
			t.Errorf("%s: %v, want allowed %v", address, err, want)
		}
		metadata := strings.Contains(address, "a9fe")
		if err := (guard.Named{}).Address(netip.AddrPortFrom(netip.MustParseAddr(address), 1)); (err != nil) != metadata {
			t.Errorf("%s, named by the administrator: %v, want refused %v", address, err, metadata)
		}
	}
}

func TestHosts(t *testing.T) {
	hosts, err := guard.NewHosts([]string{"example.com", "*.Bücher.example", "::ffff:127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"example.com": true, "a.example.com": false, "notexample.com": false, "xn--bcher-kva.example": false, "a.xn--bcher-kva.example": true, "127.0.0.1": true,
	} {
		if got := hosts.Have(host); got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
	if _, err := guard.NewHosts([]string{"http://x"}); err == nil {
		t.Error("an address is a host")
	}
}

func TestDomains(t *testing.T) {
	g := newGuard(t, guard.Options{Allow: []string{"example.com", "*.Bücher.example", "93.184.215.14"}, Deny: []string{"evil.example.com", "8.8.8.8"}})
	for host, want := range map[string]bool{
		"example.com": true, "a.example.com": true, "notexample.com": false, "example.com.evil": false, "xn--bcher-kva.example": true,
		"evil.example.com": false, "a.evil.example.com": false, "93.184.215.14": true, "93.184.215.15": false, "other.example": false,
	} {
		if _, err := g.URL("http://" + host + "/"); (err == nil) != want {
			t.Errorf("%s: %v, want allowed %v", host, err, want)
		}
	}
	for _, address := range []string{"8.8.8.8:80", "[::ffff:8.8.8.8]:80"} { // the allowed targets of a name
		if g.Address(netip.MustParseAddrPort(address)) == nil {
			t.Errorf("%s may be dialled although it is denied", address)
		}
	}
}

// A name is looked up once, and only checked addresses are dialed.
func TestDialer(t *testing.T) {
	g := newGuard(t, guard.Options{})
	closed := errors.New("closed")
	isClosed := func(err error) bool { return errors.Is(err, closed) }
	isUnknown := func(err error) bool { return errors.As(err, new(*net.DNSError)) }
	for _, tt := range []struct {
		name, address string
		addresses     []string
		want          []string // that are dialled
		fails         func(error) bool
	}{
		{"a public name", "example.com:80", []string{"93.184.215.14"}, []string{"93.184.215.14:80"}, isClosed},
		{"several", "example.com:443", []string{"93.184.215.14", "2606:4700::1"}, []string{"93.184.215.14:443", "[2606:4700::1]:443"}, isClosed},
		{"one of them private", "example.com:80", []string{"10.0.0.1", "93.184.215.14", "::1"}, []string{"93.184.215.14:80"}, isClosed},
		{"all private", "example.com:80", []string{"10.0.0.1", "::1"}, nil, isRefusal},
		{"in the form of IPv6", "example.com:80", []string{"::ffff:127.0.0.1"}, nil, isRefusal},
		{"a number", "93.184.215.14:80", nil, []string{"93.184.215.14:80"}, isClosed},
		{"a private number", "[::1]:80", nil, nil, isRefusal},
		{"a port that may not be", "example.com:22", []string{"93.184.215.14"}, nil, isRefusal},
		{"more than are tried", "example.com:80", slices.Repeat([]string{"93.184.215.14"}, 20), slices.Repeat([]string{"93.184.215.14:80"}, 8), isClosed},
		{"none", "example.com:80", nil, nil, isUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lookups := 0
			var dialled []string
			d := guard.Dialer{
				Guard: g,
				Lookup: func(context.Context, string) ([]netip.Addr, error) {
					lookups++
					var ips []netip.Addr
					for _, text := range tt.addresses {
						ips = append(ips, netip.MustParseAddr(text))
					}
					return ips, nil
				},
				Dial: func(_ context.Context, _, address string) (net.Conn, error) {
					dialled = append(dialled, address)
					return nil, closed
				},
			}
			_, err := d.DialContext(t.Context(), "tcp", tt.address)
			if !tt.fails(err) {
				t.Errorf("the error is %v", err)
			}
			if isRefusal(err) && len(tt.addresses) > 0 && (strings.Contains(err.Error(), tt.addresses[0]) || !strings.Contains(err.Error(), "example.com")) && tt.name != "a port that may not be" {
				t.Errorf("who asks learns where the name leads: %v", err)
			}
			if !slices.Equal(dialled, tt.want) || lookups > 1 {
				t.Errorf("%v were dialled after %d look-ups, want %v", dialled, lookups, tt.want)
			}
		})
	}
}

// The real network is asked only about checked addresses, which are checked again there: a
// listener on this machine receives nothing unless the administrator allows it.
func TestDialerOfTheSystem(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	port := int(netip.MustParseAddrPort(address).Port())
	closed := guard.Dialer{Guard: newGuard(t, guard.Options{Ports: []int{port}})}
	if conn, err := closed.DialContext(t.Context(), "tcp", address); !isRefusal(err) {
		t.Errorf("%v, %v; want a refusal", conn, err)
	}
	open := guard.Dialer{Guard: newGuard(t, guard.Options{Ports: []int{port}, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})}
	conn, err := open.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	_ = conn.Close()
}

// FuzzURL: every URL that passes names a host that is contacted exactly as written.
func FuzzURL(f *testing.F) {
	for _, text := range []string{
		"https://example.com/", "http://127.1/", "http://[::1]/", "http://a@b/", "http://%31/", "http:\\\\x", "https://xn--bcher-kva.example:8443/?q#f", "http://１.example",
	} {
		f.Add(text)
	}
	g, err := guard.New(guard.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := g.URL(text)
		if err != nil {
			if !isRefusal(err) {
				t.Errorf("%q: %v is no refusal", text, err)
			}
			return
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || again.User != nil || again.Fragment != "" {
			t.Fatalf("%q became %q, which reads as %q: %v", text, u, again, err)
		}
		if err := g.Check(again); err != nil || again.Host != u.Host {
			t.Errorf("%q became %q, which is refused, or changed again: %v", text, u, err)
		}
		host := u.Hostname()
		if ip, err := netip.ParseAddr(host); err == nil {
			if g.Address(netip.AddrPortFrom(ip, 80)) != nil {
				t.Errorf("%q leads to %s", text, ip)
			}
			return
		}
		labels := strings.Split(host, ".")
		if last := labels[len(labels)-1]; len(labels) < 2 || last == "localhost" || strings.Trim(last, "0123456789") == "" {
			t.Errorf("%q leads to the host %q", text, host)
		}
	})
}
