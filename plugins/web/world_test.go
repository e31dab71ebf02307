package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// public is the address of every host of a world that says nothing else.
const public = "93.184.215.14"

// world is an internet of one machine: names lead to addresses as it says, public
// addresses to servers on loopback, and all others to a listener that should never
// hear anything. No packet leaves the machine.
type world struct {
	handler http.Handler
	servers struct{ plain, encrypted *httptest.Server }
	// encrypted is where port 443 leads to.
	encrypted string
	trap      net.Listener
	trapped   atomic.Int64 // bytes that the trap has received
	outside   outside
	// everywhere makes every address a server's.
	everywhere bool

	mu      sync.Mutex
	names   map[string][][]string // the addresses of a host, look-up by look-up
	lookups map[string]int
	dialled []string
}

// newWorld starts the servers, with HTTP/1.1 at http and HTTP/2 at https.
func newWorld(tb testing.TB, handler http.Handler) *world {
	tb.Helper()
	w := &world{handler: handler, names: map[string][][]string{}, lookups: map[string]int{}}
	quiet := func(s *httptest.Server) *httptest.Server {
		s.Config.ErrorLog = nil
		s.Config.MaxHeaderBytes = 1 << 20
		return s
	}
	answer := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { w.handler.ServeHTTP(out, r) })
	w.servers.plain = quiet(httptest.NewUnstartedServer(answer))
	w.servers.plain.Config.SetKeepAlivesEnabled(false) // each request looks its host up again
	w.servers.plain.Start()
	w.servers.encrypted = quiet(httptest.NewUnstartedServer(answer))
	w.servers.encrypted.EnableHTTP2 = true
	authority := newAuthority(tb)
	w.servers.encrypted.TLS = &tls.Config{GetCertificate: authority.certificate}
	w.servers.encrypted.StartTLS()
	w.encrypted = w.servers.encrypted.Listener.Addr().String()
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	w.trap = trap
	var accepting sync.WaitGroup
	accepting.Go(w.spring)
	tb.Cleanup(func() {
		w.servers.plain.CloseClientConnections()
		w.servers.encrypted.CloseClientConnections()
		w.servers.plain.Close()
		w.servers.encrypted.Close()
		_ = trap.Close()
		accepting.Wait()
	})
	w.outside = outside{lookup: w.lookup, dial: w.dial, tls: &tls.Config{RootCAs: authority.pool}}
	return w
}

// spring counts the requests to the trap, and answers like a web server without pages.
func (w *world) spring() {
	for {
		conn, err := w.trap.Accept()
		if err != nil {
			return
		}
		head := make([]byte, 4096)
		n, _ := conn.Read(head)
		w.trapped.Add(int64(n))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret")
		_ = conn.Close()
	}
}

func (w *world) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answers := w.names[host]
	if answers == nil {
		answers = [][]string{{public}}
	}
	n := min(w.lookups[host], len(answers)-1)
	w.lookups[host]++
	var ips []netip.Addr
	for _, text := range answers[n] {
		ips = append(ips, netip.MustParseAddr(text))
	}
	if len(ips) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return ips, nil
}

func (w *world) dial(ctx context.Context, _, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, address)
	w.mu.Unlock()
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	switch {
	case !w.everywhere && (to.Addr().String() != public && to.Addr().String() != "172.32.0.1" || to.Port() == 6379 || to.Port() == 2375):
		return d.DialContext(ctx, "tcp", w.trap.Addr().String())
	case to.Port() == 443 || to.Port() == 8443:
		return d.DialContext(ctx, "tcp", w.encrypted)
	default:
		return d.DialContext(ctx, "tcp", w.servers.plain.Listener.Addr().String())
	}
}

// dials returns the addresses that were dialled.
func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialled)
}

// lookedUp returns the hosts that were looked up.
func (w *world) lookedUp() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.lookups))
}

// start runs the plugin in the world.
func (w *world) start(tb testing.TB, options sdktest.Options) *sdktest.Plugin {
	tb.Helper()
	if options.Context.MaxOutput == 0 {
		options.Context.MaxOutput = 256 * tool.KiB
	}
	return sdktest.Start(tb, newPlugin(w.outside), options)
}

// authority signs certificates for any host, except hosts whose name describes a faulty
// certificate.
type authority struct {
	tb   testing.TB
	pool *x509.CertPool
	root *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(tb testing.TB) *authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	a := &authority{tb: tb, key: key, pool: x509.NewCertPool()}
	a.root = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.root, a.root, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	if a.root, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	a.pool.AddCert(a.root)
	return a
}

func (a *authority) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := hello.ServerName
	if name == "" {
		name = public
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	if ip := net.ParseIP(name); ip != nil {
		leaf.IPAddresses = []net.IP{ip}
	}
	parent, signer := a.root, a.key
	switch {
	case strings.HasPrefix(name, "expired."):
		leaf.NotAfter = time.Now().Add(-time.Hour)
	case strings.HasPrefix(name, "wrong-host."):
		leaf.DNSNames = []string{"other.example"}
	case strings.HasPrefix(name, "self-signed."):
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		parent, signer = leaf, key
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, parent, signer.Public(), signer)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: signer}, nil
}

// site answers known paths with their content, and others with "not found".
type site map[string]http.HandlerFunc

// ServeHTTP implements [http.Handler].
func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := s[r.Host+r.URL.Path]; h != nil {
		h(w, r)
		return
	}
	if h := s[r.URL.Path]; h != nil {
		h(w, r)
		return
	}
	http.NotFound(w, r)
}

// serve answers with a text of a media type.
func serve(mediaType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		_, _ = io.WriteString(w, text)
	}
}

// raw listens with TLS and answers every connection with the same bytes, in HTTP/1.1.
func (w *world) raw(tb testing.TB, answer string) {
	tb.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: w.servers.encrypted.TLS.GetCertificate})
	if err != nil {
		tb.Fatal(err)
	}
	var answering sync.WaitGroup
	answering.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answering.Go(func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				text := answer
				if r.URL.Path == "/robots.txt" {
					text = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
				}
				_, _ = io.WriteString(conn, text)
			})
		}
	})
	tb.Cleanup(func() {
		_ = listener.Close()
		answering.Wait()
	})
	w.encrypted = listener.Addr().String()
}
