package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// largeAnswer is the size of a download, in bytes.
const largeAnswer = 256 << 20

// serveLarge answers with one byte, or with many.
func serveLarge(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/large" {
		_, _ = w.Write([]byte{1})
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(largeAnswer))
	piece := make([]byte, 256<<10)
	for range largeAnswer / len(piece) {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// link carries connections to a server at a rate and with a delay, each way.
type link struct {
	net.Listener

	to      string
	rate    int64 // bytes per second; 0: as fast as it can
	delay   time.Duration
	ctx     context.Context //nolint:containedctx // ends the waits
	serving sync.WaitGroup
}

// newLink opens a link to a server. The end of the benchmark closes it.
func newLink(b *testing.B, to string, rate int64, delay time.Duration) *link {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	l := &link{Listener: listener, to: to, rate: rate, delay: delay, ctx: b.Context()}
	l.serving.Go(func() { // ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.serving.Go(func() { l.carry(conn) }) // ends with its client and server
		}
	})
	b.Cleanup(func() {
		_ = listener.Close()
		l.serving.Wait()
	})
	return l
}

func (l *link) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer server.Close()
	done := make(chan struct{})
	go func() { // ends with the client
		l.pipe(server, client)
		close(done)
	}()
	l.pipe(client, server)
	_ = client.Close()
	<-done
}

// pipe carries bytes one way: each piece arrives when the link was free for it, and the delay later.
func (l *link) pipe(to, from net.Conn) {
	type piece struct {
		bytes []byte
		at    time.Time
	}
	pieces := make(chan piece, 64) // more than the link holds: 1.25 MB at 1 Gbit/s and 10 ms
	go func() {                    // ends with the source
		defer close(pieces)
		free := time.Now()
		for {
			buf := make([]byte, 64<<10)
			n, err := from.Read(buf)
			if now := time.Now(); free.Before(now) {
				free = now
			}
			if l.rate > 0 {
				free = free.Add(time.Duration(int64(n) * int64(time.Second) / l.rate))
			}
			if n > 0 {
				pieces <- piece{buf[:n], free.Add(l.delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for p := range pieces {
		timer.Reset(time.Until(p.at))
		select {
		case <-timer.C:
		case <-l.ctx.Done():
		}
		if _, err := to.Write(p.bytes); err != nil {
			_ = from.Close() // its reader
		}
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
}

// getter is the client of these benchmarks in a sandbox.
type getter struct {
	launcher *sandbox.Launcher
	program  string
}

func newGetter(b *testing.B) *getter {
	b.Helper()
	g := &getter{program: filepath.Join(b.TempDir(), "getter")}
	build := exec.Command("go", "build", "-trimpath", "-o", g.program, "./testdata/getter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as in the Makefile
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	var err error
	if g.launcher, err = sandbox.NewLauncher(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := g.launcher.Close(); err != nil {
			b.Error(err)
		}
	})
	return g
}

// start starts the client, with a proxy to a server or with the host's network.
func (g *getter) start(b *testing.B, server string, args ...string) (*sandbox.Process, *egress.Proxy) {
	b.Helper()
	binary, err := os.Open(g.program)
	if err != nil {
		b.Fatal(err)
	}
	defer binary.Close()
	p := sandbox.Profile{
		Binary: binary, Path: g.program, Args: args, Confinement: sandbox.Confinement{Isolation: sandbox.Strict, Network: sandbox.NetworkHost},
	}
	if server != "" {
		p.Confinement.Network, p.ProxyPort = sandbox.NetworkProxy, egress.Port
		p.ProxyEnv = []string{"HTTP_PROXY=http://" + egress.Address, "HTTPS_PROXY=http://" + egress.Address}
	}
	proc, err := g.launcher.Launch(b.Context(), p)
	if err != nil {
		b.Fatal(err)
	}
	if server == "" {
		return proc, nil
	}
	all := make([]egress.Destination, 2)
	for i, text := range []string{"example.com", "*:7"} {
		if all[i], err = egress.ParseDestination(text); err != nil {
			b.Fatal(err)
		}
	}
	return proc, egress.New(b.Context(), egress.Options{
		Listener: proc.Proxy, Rules: &egress.Rules{Allow: all}, CauseOf: func([]byte) egress.Cause { return egress.Cause{} },
		Opened: func(egress.Connection) {}, Closed: func(egress.Connection) {},
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
		},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", server)
		},
	})
}

// download is what getter prints.
type download struct {
	First      time.Duration
	PerSecond  float64
	Downloaded int64
}

// get measures one client, which goes through a proxy to a server, or directly if through is "".
func (g *getter) get(b *testing.B, scheme, server, through string, times int) download {
	b.Helper()
	direct := server
	if through != "" {
		direct = ""
	}
	proc, proxy := g.start(b, through, scheme+"://example.com", direct, strconv.Itoa(times))
	var said bytes.Buffer
	drained := make(chan error, 1)
	go func() { // ends with the client
		_, err := said.ReadFrom(proc.Stderr)
		drained <- err
	}()
	text, err := io.ReadAll(proc.Stdout)
	<-drained
	<-proc.Done()
	if proxy != nil {
		proxy.Close()
	}
	var got download
	if err != nil || json.Unmarshal(text, &got) != nil || got.Downloaded != largeAnswer-1 {
		b.Fatalf("the client printed %q: %v, %s", text, err, &said)
	}
	for _, f := range []io.Closer{proc.Stdin, proc.Stdout, proc.Stderr} {
		_ = f.Close()
	}
	return got
}

// BenchmarkProxy measures a client in a sandbox that uses the proxy, and one with the host's network,
// in turns: the time to the first byte with a new connection, and a large download. The link is one
// of the benchmark: it carries bytes at 1 Gbit/s, and takes 5 ms each way, except for the handshake of
// TCP.
func BenchmarkProxy(b *testing.B) {
	g := newGetter(b)
	plain, secure := httptest.NewServer(http.HandlerFunc(serveLarge)), httptest.NewTLSServer(http.HandlerFunc(serveLarge))
	defer plain.Close()
	defer secure.Close()
	for _, scheme := range []string{"http", "https"} {
		address := plain.Listener.Addr().String()
		if scheme == "https" {
			address = secure.Listener.Addr().String()
		}
		for _, link := range []struct {
			name  string
			to    string
			times int
		}{
			{"loopback", address, 200},
			{"link", newLink(b, address, 125_000_000, 5*time.Millisecond).Addr().String(), 50},
		} {
			b.Run(scheme+"/"+link.name, func(b *testing.B) {
				var first [2][]time.Duration
				var rate [2][]float64
				var ratio []float64
				for b.Loop() {
					for i, through := range []string{link.to, ""} {
						got := g.get(b, scheme, link.to, through, link.times)
						first[i], rate[i] = append(first[i], got.First), append(rate[i], got.PerSecond)
					}
					last := len(ratio)
					ratio = append(ratio, rate[0][last]/rate[1][last])
				}
				for i, name := range []string{"proxy", "direct"} {
					slices.Sort(rate[i])
					b.ReportMetric(float64(median(first[i]).Microseconds())/1e3, name+"-first-ms")
					b.ReportMetric(rate[i][len(rate[i])/2]/1e6, name+"-MB/s")
				}
				slices.Sort(ratio)
				b.ReportMetric(float64(median(first[0])-median(first[1]))/1e6, "added-ms")
				b.ReportMetric(ratio[len(ratio)/2], "proxy/direct") // of each round: the load of the machine changes
			})
		}
	}
}

// BenchmarkProxyMemory measures what 1,000 open tunnels take in the host: its heap and stacks.
func BenchmarkProxyMemory(b *testing.B) {
	const tunnels = 1000
	g := newGetter(b)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() { // ends with the listener; the connections need no goroutine
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			b.Cleanup(func() { _ = conn.Close() })
		}
	})
	inUse := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	var each []int64
	for b.Loop() {
		proc, proxy := g.start(b, listener.Addr().String(), "hold", "example.com:7", strconv.Itoa(tunnels))
		before := inUse()
		line, err := bufio.NewReader(proc.Stdout).ReadString('\n')
		if err != nil || line != fmt.Sprintln(tunnels) {
			said, _ := io.ReadAll(proc.Stderr)
			b.Fatalf("the client printed %q, %v: %s", line, err, said)
		}
		if live := proxy.Live(); len(live) != tunnels {
			b.Fatalf("%d are open", len(live))
		}
		each = append(each, (inUse()-before)/tunnels)
		_ = proc.Stdin.Close()
		<-proc.Done()
		proxy.Close()
		_, _ = proc.Stdout.Close(), proc.Stderr.Close()
	}
	_ = listener.Close()
	accepting.Wait()
	slices.Sort(each)
	b.ReportMetric(float64(each[len(each)/2])/1024, "KiB/connection")
}
