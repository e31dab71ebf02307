package sandbox

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// proxyPort is the port of the proxy in the tests, and otherPort that of another program's.
const proxyPort, otherPort = 3128, 3129

// outside are the services of a host that a program could reach around its proxy.
type outside struct {
	TCP, TCP6, UDP, UDP6, Loopback, Multicast, SCTP, UDPLite int
	Unix, Datagram, Packets, Abstract, State, Inside, Link   string // paths of sockets
	Host, Other                                              int    // process ids: of the host, and of a program with a proxy of its own

	mu      sync.Mutex
	reached map[string]bool // by the names of the ways

	services []func(name string) error // each says a name to a service
	settled  chan struct{}             // a service has got to the mark
}

// mark is what the test sends to each service when the program has ended. A service reads one after
// the other, so what came before has been read.
const mark = "mark"

// note records that a way led to a service.
func (o *outside) note(way string) {
	if way == mark {
		o.settled <- struct{}{}
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reached[way] = true
}

// settle waits until the services have read all that was sent to them.
func (o *outside) settle(t *testing.T) {
	t.Helper()
	for _, say := range o.services {
		must(t, say(mark))
		<-o.settled
	}
}

// openOutside starts the services of a host.
func (s *scene) openOutside() *outside {
	s.t.Helper()
	o := &outside{
		Unix: s.home + "/stream", Datagram: s.home + "/datagram", Packets: s.home + "/packets", Abstract: "@" + s.dir, State: s.state + "/control",
		Inside: s.workspace + "/stream", Link: s.workspace + "/link", Host: os.Getpid(), reached: map[string]bool{}, settled: make(chan struct{}, 1),
	}
	must(s.t, os.Chmod(s.state, 0o755)) // what keeps it off is not the mode
	must(s.t, os.Symlink(o.Unix, o.Link))
	o.TCP, o.UDP, o.Loopback = s.stream(o, "tcp4", "127.0.0.1:0"), s.packets(o, "udp4", "127.0.0.1:0"), s.stream(o, "tcp4", "127.9.9.9:0")
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil { // else this machine has no IPv6
		l.Close()
		o.TCP6, o.UDP6 = s.stream(o, "tcp6", "[::1]:0"), s.packets(o, "udp6", "[::1]:0")
	}
	for _, path := range []string{o.Unix, o.State, o.Inside, o.Abstract} {
		s.stream(o, "unix", path)
	}
	for _, path := range []string{o.Packets, o.Abstract + "-packets"} {
		s.stream(o, "unixpacket", path)
	}
	for _, path := range []string{o.Datagram, o.Abstract + "-datagram"} {
		s.packets(o, "unixgram", path)
	}
	o.Multicast = s.listensToGroup(o)
	o.SCTP, o.UDPLite = s.protocol(o, unix.SOCK_STREAM, unix.IPPROTO_SCTP), s.protocol(o, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE)
	return o
}

// stream opens a service of connections and returns its port.
func (s *scene) stream(o *outside, network, address string) (port int) {
	s.t.Helper()
	l, err := net.Listen(network, address)
	must(s.t, err)
	s.accept(o, l, dialed(network, l.Addr().String()))
	if to, ok := l.Addr().(*net.TCPAddr); ok {
		return to.Port
	}
	if strings.HasPrefix(address, "/") {
		must(s.t, os.Chmod(address, 0o777))
	}
	return 0
}

// accept notes what the connections of a listener say.
func (s *scene) accept(o *outside, l net.Listener, say func(string) error) {
	o.services = append(o.services, say)
	var serving sync.WaitGroup
	serving.Go(func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			way, _ := io.ReadAll(conn) // ends with the program
			conn.Close()
			o.note(string(way))
		}
	})
	s.t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
}

// packets opens a service of datagrams and returns its port.
func (s *scene) packets(o *outside, network, address string) (port int) {
	s.t.Helper()
	conn, err := net.ListenPacket(network, address)
	must(s.t, err)
	s.read(o, conn, dialed(network, conn.LocalAddr().String()))
	if to, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		return to.Port
	}
	if strings.HasPrefix(address, "/") {
		must(s.t, os.Chmod(address, 0o777))
	}
	return 0
}

// read notes what datagrams say.
func (s *scene) read(o *outside, conn net.PacketConn, say func(string) error) {
	o.services = append(o.services, say)
	var serving sync.WaitGroup
	serving.Go(func() { // ends with the socket
		for buf := make([]byte, 256); ; {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			o.note(string(buf[:n]))
		}
	})
	s.t.Cleanup(func() {
		conn.Close()
		serving.Wait()
	})
}

// listensToGroup joins a multicast group on the loopback interface and returns its port.
func (s *scene) listensToGroup(o *outside) (port int) {
	s.t.Helper()
	lo, err := net.InterfaceByName("lo")
	must(s.t, err)
	conn, err := net.ListenMulticastUDP("udp4", lo, multicastGroup(0))
	must(s.t, err)
	port = conn.LocalAddr().(*net.UDPAddr).Port
	s.read(o, conn, multicast(port))
	return port
}

// protocol opens a service of another protocol than TCP and UDP, and returns its port; 0 if the kernel
// has none.
func (s *scene) protocol(o *outside, typ, protocol int) (port int) {
	s.t.Helper()
	fd, err := unix.Socket(unix.AF_INET, typ|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return 0
	}
	file := os.NewFile(uintptr(fd), "service")
	defer file.Close() // the service has a copy
	must(s.t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at, err := unix.Getsockname(fd)
	must(s.t, err)
	say := sent(unix.AF_INET, typ, protocol, 0, at)
	if typ == unix.SOCK_DGRAM {
		say = sent(unix.AF_INET, typ, protocol, unix.MSG_DONTWAIT, at)
		conn, err := net.FilePacketConn(file)
		must(s.t, err)
		s.read(o, conn, say)
	} else {
		must(s.t, unix.Listen(fd, 64))
		l, err := net.FileListener(file)
		must(s.t, err)
		s.accept(o, l, say)
	}
	return at.(*unix.SockaddrInet4).Port
}

// serveProxy answers at the socket that the host has in the namespace of a program.
func serveProxy(t *testing.T, l net.Listener, answer string) {
	t.Helper()
	var serving sync.WaitGroup
	serving.Go(func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, answer)
			conn.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
}

// proxied makes a profile's network that of a proxy.
func proxied(p *Profile) {
	p.Confinement.Network, p.ProxyPort, p.ProxyEnv = NetworkProxy, proxyPort, []string{"HTTP_PROXY=http://127.0.0.1:3128"}
}

// around runs the program that tries all ways, and returns the ways that led outside, and whether it
// reached its proxy.
func (s *scene) around(l *Launcher, edit func(*Profile), drop ...Layer) (ways []string, proxy bool) {
	s.t.Helper()
	o := s.openOutside()
	o.Other = s.otherProgram(l)
	order, err := json.Marshal(o)
	must(s.t, err)
	p := s.profile([]string{"attack", "around", string(order)})
	edit(&p)
	proc, err := l.launchWithout(s.t.Context(), &p, drop)
	if err != nil {
		s.t.Fatal(err)
	}
	defer proc.closeStdio()
	if proc.Proxy != nil {
		serveProxy(s.t, proc.Proxy, "mine")
	}
	proc.Stdin.Close()
	text, err := io.ReadAll(proc.Stdout)
	must(s.t, err)
	said, err := io.ReadAll(proc.Stderr)
	must(s.t, err)
	<-proc.Done()
	o.settle(s.t)
	if !strings.HasSuffix(string(text), "\nend\n") {
		s.t.Fatalf("the program did not end well: %q, %.2000s", text, said)
	}
	if os.Getenv(verboseVariable) != "" {
		s.t.Logf("%s\n%s", text, said)
	}
	for line := range strings.Lines(string(text)) {
		if way, ok := strings.CutPrefix(strings.TrimSpace(line), "reached: "); ok {
			o.note(way)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	proxy = o.reached["proxy"]
	delete(o.reached, "proxy")
	return slices.Sorted(maps.Keys(o.reached)), proxy
}

// otherProgram starts a program with a proxy of its own, and returns its id.
func (s *scene) otherProgram(l *Launcher) int {
	s.t.Helper()
	p := s.profile([]string{"attack", "waits"})
	proxied(&p)
	p.ProxyPort = otherPort
	proc := started(s.t, l, p)
	if proc.Proxy == nil {
		s.t.Fatalf("the other program has no proxy: %v", proc.Report)
	}
	serveProxy(s.t, proc.Proxy, "other")
	return proc.PID()
}

// TestProxyIsTheOnlyWay tries to get around the proxy of a program, as root's and as an ordinary
// user's. The controls are a program with the host's network and no guard, which reaches all that
// its user may reach, and that each program reaches its own proxy.
func TestProxyIsTheOnlyWay(t *testing.T) {
	if os.Geteuid() == 0 {
		removeArena(t)
		proxyAsUser(t)
	} else if os.Getenv(arenaVariable) == "" {
		removeArena(t)
	}
	l := newLauncher(t)
	unguarded := func(p *Profile) { p.Confinement = Confinement{Isolation: Off, Network: NetworkHost} }
	s := newScene(t)
	t.Cleanup(s.close)
	free, _ := s.around(l, unguarded)
	var missed []string
	for _, way := range ways(&outside{}) {
		if !slices.Contains(free, way.name) && way.always && (way.privilege == "" || os.Geteuid() == 0) {
			missed = append(missed, way.name)
		}
	}
	if len(missed) > 0 {
		t.Errorf("control: without a guard these ways lead nowhere, so that they prove nothing: %q", missed)
	}
	t.Logf("as %s, %d of %d ways lead outside without a guard: %q", who(), len(free), len(ways(&outside{})), free)
	for _, level := range []Isolation{Isolated, Strict} {
		for name, more := range map[string]func(*Profile){"": func(*Profile) {}, " and may execute others": executes} {
			t.Run(level.String()+name, func(t *testing.T) {
				s := newScene(t)
				t.Cleanup(s.close)
				got, proxy := s.around(l, func(p *Profile) {
					proxied(p)
					more(p)
					p.Confinement.Isolation = level
				})
				if !proxy {
					t.Error("control: it does not reach its proxy")
				}
				allowed := openWays(level)
				if got = slices.DeleteFunc(got, func(way string) bool { return slices.Contains(allowed, way) }); len(got) > 0 {
					t.Errorf("these ways lead outside: %q", got)
				}
			})
		}
	}
}

// openWays are the ways to unix sockets that no network keeps a program off, at a level: it may connect,
// to its proxy, and no filter of system calls sees to what. SECURITY.md says so of programs that
// execute others and of those with the host's network.
func openWays(level Isolation) []string {
	ways := []string{"unix in the workspace"}
	if level != Strict {
		ways = append(ways, "unix", "unix by a link in the workspace", "unix packets", "unix datagram", "unix datagram from a pair", "unix by /proc/1/root", "unix by /proc/self/root")
	}
	return ways
}

// TestProxyWithoutNamespace: where there is no network namespace, a program that should have a proxy
// has no network at all, and its report says so.
func TestProxyWithoutNamespace(t *testing.T) {
	removeArena(t)
	l := newLauncher(t)
	for name, more := range map[string]func(*Profile){"alone": func(*Profile) {}, "may execute others": executes} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			t.Cleanup(s.close)
			got, proxy := s.around(l, func(p *Profile) {
				proxied(p)
				more(p)
				p.Confinement.Isolation, p.Confinement.WarnOnMissing = Isolated, true
			}, LayerNetNS)
			got = slices.DeleteFunc(got, func(way string) bool { return strings.HasPrefix(way, "unix") })
			if proxy || len(got) > 0 {
				t.Errorf("it reaches its proxy: %v, and outside by %q", proxy, got)
			}
		})
	}
	t.Run("the report", func(t *testing.T) {
		p := profile(t, "attack", "done")
		proxied(&p)
		p.Confinement.Isolation = Basic
		proc := started(t, l, p)
		if gap := slices.IndexFunc(proc.Report.Missing, func(g Gap) bool { return g.Layer == LayerNetNS }); proc.Proxy != nil || gap < 0 ||
			!strings.Contains(proc.Report.Missing[gap].Reason, "no network") {
			t.Errorf("%+v, and the proxy is %v; want that there is none for want of a namespace", proc.Report, proc.Proxy)
		}
	})
	t.Run("no isolation", func(t *testing.T) {
		p := profile(t, "attack", "done")
		proxied(&p)
		if proc, err := l.Launch(t.Context(), p); err == nil {
			t.Errorf("%+v was started", proc.Report)
		}
	})
}

// TestProxySocket: the host has the only socket, the program finds the variables, and an attempt
// leaves nothing.
func TestProxySocket(t *testing.T) {
	l := newLauncher(t)
	edit := func() Profile {
		p := profile(t, "inspect")
		proxied(&p)
		p.Env, p.Confinement.Isolation = append(p.Env, "HTTP_PROXY=http://evil.example", "A=b"), Isolated
		return p
	}
	report, err := l.Try(t.Context(), edit())
	if err != nil || slices.ContainsFunc(report.Missing, func(g Gap) bool { return g.Layer == LayerNetNS }) {
		t.Errorf("Try = %+v, %v", report, err)
	}
	first, second := started(t, l, edit()), started(t, l, edit())
	for _, proc := range []*Process{first, second} { // each has the same port
		if proc.Proxy == nil || proc.Proxy.Addr().String() != "127.0.0.1:"+strconv.Itoa(proxyPort) {
			t.Fatalf("the proxy listens at %v", proc.Proxy)
		}
		t.Cleanup(func() { proc.Proxy.Close() })
		var got state
		must(t, json.Unmarshal([]byte(readAll(t, proc)), &got))
		if env := slices.DeleteFunc(slices.Clone(got.Env), func(v string) bool { return !strings.HasPrefix(v, "HTTP_PROXY=") }); !slices.Equal(env, []string{"HTTP_PROXY=http://127.0.0.1:3128"}) {
			t.Errorf("its environment has %q", env)
		}
		if !slices.Contains(got.Env, "A=b") {
			t.Errorf("its environment is %q", got.Env)
		}
		for fd, what := range got.Descriptors {
			if strings.HasPrefix(what, "socket:") {
				t.Errorf("it has the descriptor %s of %s", fd, what)
			}
		}
	}
	if conn, err := net.Dial("tcp", first.Proxy.Addr().String()); err == nil {
		conn.Close()
		t.Error("the socket is reached from the host's own network")
	}
}

// proxyAsUser runs this test as an ordinary user too.
func proxyAsUser(t *testing.T) {
	t.Helper()
	const nobody = 65534
	dir := filepath.Join(os.Getenv(arenaVariable), "user")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Chown(dir, nobody, nobody))
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestProxyIsTheOnlyWay$", "-test.v", "-test.timeout="+flag.Lookup("test.timeout").Value.String())
	cmd.Env = []string{arenaVariable + "=" + dir, verboseVariable + "=" + os.Getenv(verboseVariable)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	t.Cleanup(func() {
		if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "--- PASS: TestProxyIsTheOnlyWay") {
			t.Errorf("as an ordinary user: %v\n%s", err, &out)
		}
	})
}
