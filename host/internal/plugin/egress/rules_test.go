package egress_test

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/sdk/guard"
)

// TestDecide decides about destinations by lists, ports, wildcards and networks.
func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		allow, deny, to string
		ask, private    bool
		want            egress.Verdict
		rule            string
	}{
		{to: "example.com:443", want: egress.Deny, rule: "not in allow"},
		{to: "example.com:443", ask: true, want: egress.Ask, rule: "ask"},
		{allow: "example.com", to: "example.com:443", want: egress.Allow, rule: `allow "example.com"`},
		{allow: "example.com", to: "example.com:80", want: egress.Allow},
		{allow: "example.com", to: "EXAMPLE.com.:443", want: egress.Allow},
		{allow: "Example.COM.", to: "example.com:443", want: egress.Allow},
		{allow: "example.com", to: "example.com:8080", want: egress.Deny},
		{allow: "example.com:8080", to: "example.com:8080", want: egress.Allow},
		{allow: "example.com:8080", to: "example.com:443", want: egress.Deny},
		{allow: "example.com", to: "sub.example.com:443", want: egress.Deny},
		{allow: "example.com", to: "notexample.com:443", want: egress.Deny},
		{allow: "example.com", to: "example.com.evil.org:443", want: egress.Deny},
		{allow: "*.example.com", to: "sub.example.com:443", want: egress.Allow},
		{allow: "*.example.com", to: "a.b.example.com:443", want: egress.Allow},
		{allow: "*.example.com", to: "example.com:443", want: egress.Deny},
		{allow: "*.example.com", to: "evilexample.com:443", want: egress.Deny},
		{allow: "*.example.com:8443", to: "sub.example.com:8443", want: egress.Allow},
		{allow: "*.example.com:8443", to: "sub.example.com:443", want: egress.Deny},
		{allow: "*", to: "example.com:443", want: egress.Allow},
		{allow: "*", to: "example.com:22", want: egress.Deny},
		{allow: "*:22", to: "example.com:22", want: egress.Allow},
		{allow: "*", to: "93.184.215.14:443", want: egress.Allow},
		{allow: "*", to: "10.0.0.1:443", want: egress.Deny, rule: "private addresses"},
		{allow: "*", to: "127.0.0.1:80", want: egress.Deny},
		{allow: "*", to: "[::1]:80", want: egress.Deny},
		{allow: "*", to: "localhost:80", want: egress.Deny, rule: "names of private networks"},
		{allow: "*", to: "db:80", want: egress.Deny},
		{allow: "*", to: "host.corp:80", want: egress.Deny},
		{allow: "*", private: true, to: "db:80", want: egress.Allow},
		{allow: "*", private: true, to: "10.0.0.1:443", want: egress.Allow},
		{allow: "*", private: true, to: "169.254.169.254:80", want: egress.Deny},
		{allow: "db.internal", to: "db.internal:80", want: egress.Allow},
		{allow: "10.1.2.0/24:5432", to: "10.1.2.7:5432", want: egress.Allow},
		{allow: "10.1.2.0/24:5432", to: "10.1.3.7:5432", want: egress.Deny},
		{allow: "10.1.2.0/24:5432", to: "10.1.2.7:5433", want: egress.Deny},
		{allow: "10.1.2.0/24", to: "[::ffff:10.1.2.7]:443", want: egress.Allow},
		{allow: "127.0.0.1:9000", to: "127.0.0.1:9000", want: egress.Allow},
		{allow: "[::1]:9000", to: "[::1]:9000", want: egress.Allow},
		{allow: "2001:db8::/32", to: "[2001:db8::5]:443", want: egress.Allow},
		{allow: "93.184.215.14", to: "93.184.215.14:443", want: egress.Allow},
		{allow: "93.184.215.14", to: "93.184.215.15:443", want: egress.Deny},
		{allow: "*", deny: "example.com", to: "example.com:443", want: egress.Deny, rule: `deny "example.com"`},
		{allow: "example.com:22", deny: "example.com", to: "example.com:22", want: egress.Deny},
		{allow: "*", deny: "example.com:443", to: "example.com:80", want: egress.Allow},
		{allow: "*", deny: "example.com:443", to: "example.com:443", want: egress.Deny},
		{allow: "*", deny: "*.example.com", to: "example.com:443", want: egress.Allow},
		{allow: "*", deny: "*.example.com", to: "sub.example.com:443", want: egress.Deny},
		{allow: "*", deny: "93.184.0.0/16", to: "93.184.215.14:443", want: egress.Deny},
		{deny: "example.com", ask: true, to: "example.com:443", want: egress.Deny},
		{deny: "*", ask: true, private: true, to: "db:80", want: egress.Deny},
		{ask: true, to: "10.0.0.1:443", want: egress.Deny, rule: "private addresses"},
		{ask: true, private: true, to: "10.0.0.1:443", want: egress.Ask},
		{ask: true, private: true, to: "169.254.169.254:80", want: egress.Deny, rule: "link-local, metadata and multicast addresses"},
		{ask: true, private: true, to: "[fe80::1]:80", want: egress.Deny},
		{ask: true, private: true, to: "[64:ff9b::a9fe:a9fe]:80", want: egress.Deny},
		{ask: true, private: true, to: "[::ffff:169.254.169.254]:80", want: egress.Deny},
	} {
		t.Run(fmt.Sprintf("%s allow %s deny %s ask %v private %v", tt.to, tt.allow, tt.deny, tt.ask, tt.private), func(t *testing.T) {
			r := &egress.Rules{
				Allow: destinations(t, strings.Fields(tt.allow)...), Deny: destinations(t, strings.Fields(tt.deny)...), Ask: tt.ask, Private: tt.private,
			}
			to, err := egress.ParseTarget(tt.to, 0)
			if err != nil {
				t.Fatal(err)
			}
			d := r.Decide(to)
			if d.Verdict != tt.want || tt.rule != "" && d.Rule != tt.rule {
				t.Errorf("Decide(%v) = %s by %s, want %s %s", to, d.Verdict, d.Rule, tt.want, tt.rule)
			}
			if d.Verdict == egress.Deny && d.Reason == "" {
				t.Error("the model does not learn why it is denied")
			}
		})
	}
}

// TestDestinationsThatAreNone: an entry that could be read in two ways is refused.
func TestDestinationsThatAreNone(t *testing.T) {
	for _, text := range []string{
		"", ":443", "*:", "*:0", "*:70000", "*:+80", "a b", "exa*mple.com", "*.*.example.com", "*example.com", ".example.com", "a..b", "-a.example.com",
		"http://example.com", "example.com/path", "user@example.com", "example.com:443:443", "127.1", "0x7f000001", "2130706433", "10.1.2.0/33", "*.10.1.2.3",
		"169.254.0.0/16", "0.0.0.0/0", "::/0", "fe80::/10", "224.0.0.1", "[::1", "::1]", "[::1]x", "[127.0.0.1]:80", "fe80::1%eth0", "::ffff:10.0.0.0/104",
		strings.Repeat("a", 64) + ".example.com", strings.Repeat("a.", 140) + "com",
	} {
		if d, err := egress.ParseDestination(text); err == nil {
			t.Errorf("ParseDestination(%q) = %q, want an error", text, d)
		}
	}
}

// TestTargetsThatAreNone: what a process asks for is read in one way, or refused.
func TestTargetsThatAreNone(t *testing.T) {
	for _, text := range []string{
		"", ":443", "example.com", "example.com:", "example.com:0", "example.com:65536", "example.com:-1", "example.com:4 43", "example.com:443:443",
		"user@example.com:443", "example.com/:443", "[example.com]:443", "[127.0.0.1]:443", "[::1%lo]:443", "[fe80::1%25eth0]:443", "::1:443", "[::1]443", "[[::1]]:443",
		"127.1:443", "0:443", "0x7f.1:443", "017700000001:443", "2130706433:443", "a..b:443", "-a:443", "*.example.com:443", "exam ple.com:443", "\x00:443", "ex\r\nample.com:443",
	} {
		if to, err := egress.ParseTarget(text, 0); err == nil {
			t.Errorf("ParseTarget(%q) = %q, want an error", text, to)
		}
	}
	for text, want := range map[string]string{
		"EXAMPLE.com.:443": "example.com:443", "[::FFFF:10.0.0.1]:80": "10.0.0.1:80", "[0:0::1]:80": "[::1]:80", "bücher.example:443": "xn--bcher-kva.example:443",
		"a_b.example.com:0443": "a_b.example.com:443",
	} {
		if to, err := egress.ParseTarget(text, 0); err != nil || to.String() != want {
			t.Errorf("ParseTarget(%q) = %q, %v, want %q", text, to, err, want)
		}
	}
	if to, err := egress.ParseTarget("example.com", 80); err != nil || to.Port != 80 {
		t.Errorf("ParseTarget with the port 80 = %v, %v", to, err)
	}
}

// FuzzTarget: a target that is accepted is the same when it is read again, and an address that is
// not public is denied, however it is written.
func FuzzTarget(f *testing.F) {
	for _, text := range []string{"example.com:443", "[::1]:80", "127.1:80", "[::ffff:7f00:1]:80", "1.2.3.4:1", "[64:ff9b::a9fe:a9fe]:80", "a:b:c", "xn--a:1", "ß.example:443", "[fe80::1%lo]:80"} {
		f.Add(text)
	}
	any, err := egress.ParseDestination("*")
	if err != nil {
		f.Fatal(err)
	}
	rules := &egress.Rules{Allow: []egress.Destination{any}}
	f.Fuzz(func(t *testing.T, text string) {
		to, err := egress.ParseTarget(text, 0)
		if err != nil {
			return
		}
		host, port, err := net.SplitHostPort(to.String())
		if err != nil || host != to.Host || port != strconv.Itoa(int(to.Port)) {
			t.Fatalf("%q became %q, which reads as %q and %q: %v", text, to, host, port, err)
		}
		again, err := egress.ParseTarget(to.String(), 0)
		if err != nil || again != to {
			t.Fatalf("%q became %q, which became %q: %v", text, to, again, err)
		}
		d := rules.Decide(to)
		if ip, err := netip.ParseAddr(host); err == nil && guard.Public(ip) != nil && d.Verdict != egress.Deny {
			t.Errorf("%q leads to %s, and the verdict is %s", text, ip, d.Verdict)
		}
	})
}
