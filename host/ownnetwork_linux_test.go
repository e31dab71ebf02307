package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/auth/certificate/certtest"
)

// networkVariable is set in the process that has a network of its own.
const networkVariable = "TOOLHOST_TEST_NETWORK"

// inOwnNetwork reports whether the test runs in a network of its own, which has nothing but
// a loopback interface: tests serve on the usual ports there, under any name. If not, it
// runs the test again in one.
func inOwnNetwork(t *testing.T, names ...string) bool {
	t.Helper()
	if os.Getenv(networkVariable) != "" {
		enterNetwork(t, names)
		return true
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), networkVariable+"=1", binVariable+"="+bin)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// enterNetwork starts the loopback interface and gives it the names.
func enterNetwork(t *testing.T, names []string) {
	t.Helper()
	hosts := filepath.Join(t.TempDir(), "hosts")
	text := "127.0.0.1 localhost " + strings.Join(names, " ") + "\n"
	steps := map[string]func() error{
		"start loopback":      loopbackUp,
		"write names":         func() error { return os.WriteFile(hosts, []byte(text), 0o644) },
		"keep mounts private": func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		"mount names":         func() error { return unix.Mount(hosts, "/etc/hosts", "", unix.MS_BIND, "") },
	}
	for _, what := range []string{"start loopback", "write names", "keep mounts private", "mount names"} {
		if err := steps[what](); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	t.Cleanup(func() { _ = unix.Unmount("/etc/hosts", unix.MNT_DETACH) }) // the namespace ends anyway
}

// sites are the servers of a network, by name, with and without TLS.
type sites struct {
	handlers map[string]http.Handler
	trust    string // a file with the certificate of their authority

	mu       sync.Mutex
	requests []request
}

// request is what a site was asked.
type request struct {
	host, method, path string
	header             http.Header
}

// serveSites serves each name with its handler. Programs that trust the file trust all sites.
func serveSites(t *testing.T, handlers map[string]http.Handler) *sites {
	t.Helper()
	s := &sites{handlers: handlers, trust: filepath.Join(t.TempDir(), "trust.pem")}
	authority := certtest.New(t)
	names := make([]string, 0, len(handlers))
	for name := range handlers {
		names = append(names, name)
	}
	pair, err := tls.X509KeyPair(bytesOf(authority.Issue(t, time.Now().Add(time.Hour), names...)))
	if err == nil {
		err = os.WriteFile(s.trust, []byte(authority.PEM), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for port, config := range map[int]*tls.Config{80: nil, 443: {Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}} {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		if config != nil {
			listener = tls.NewListener(listener, config)
		}
		server := &http.Server{Handler: s}
		served := make(chan struct{})
		go func() { // ends with the server
			_ = server.Serve(listener)
			close(served)
		}()
		t.Cleanup(func() {
			_ = server.Close()
			<-served
		})
	}
	return s
}

func bytesOf(a, b string) (x, y []byte) { return []byte(a), []byte(b) }

// ServeHTTP implements [http.Handler].
func (s *sites) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, request{r.Host, r.Method, r.URL.Path, r.Header.Clone()})
	s.mu.Unlock()
	if handler, ok := s.handlers[r.Host]; ok {
		handler.ServeHTTP(w, r)
		return
	}
	http.Error(w, "no such site", http.StatusNotFound)
}

// of returns the requests that a site got.
func (s *sites) of(host string) (requests []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.host == host {
			requests = append(requests, r)
		}
	}
	return requests
}
