package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// call is the call to make.
type call struct {
	tool string
	args map[string]any
	// next gives the arguments of the nth call instead, if they differ.
	next func(n int) map[string]any
}

// peer is one of the two programs that are compared.
type peer struct {
	session *mcp.ClientSession
	stop    func() // ends a program that serves HTTP
	made    call
	pid     int
	pids    []int // of the program and all that it has started
	calls   int   // so far, if the arguments differ

	took []time.Duration // of each call
	cpu  []time.Duration // of each round, per call
}

// startStdio runs a program that serves its standard input and output, and
// connects to it.
func startStdio(b *testing.B, cmd *exec.Cmd, c call) *peer {
	b.Helper()
	return connect(b, cmd, &mcp.CommandTransport{Command: cmd}, "", c, nil)
}

// serving is the output of a program that serves HTTP.
type serving struct {
	URL   string `json:"url"`
	Token string `json:"token_file"`
}

// serve runs a program that serves HTTP, and waits until it does. stop ends it.
func serve(b *testing.B, cmd *exec.Cmd) (said serving, stop func()) {
	b.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // on request
	})
	b.Cleanup(stop)
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		b.Fatal(err)
	}
	return said, stop
}

// startHTTP runs a program that serves HTTP and connects to it with a revision
// of the protocol.
func startHTTP(b *testing.B, cmd *exec.Cmd, path, revision string, c call) *peer {
	b.Helper()
	said, stop := serve(b, cmd)
	client := &http.Client{Transport: newBearer(b, said.Token)}
	return connect(b, cmd, &mcp.StreamableClientTransport{Endpoint: said.URL + path, HTTPClient: client}, revision, c, stop)
}

// bearer sends a token with every request, and keeps a connection for each
// caller.
type bearer struct {
	token string
	next  *http.Transport
}

func newBearer(b *testing.B, file string) *bearer {
	b.Helper()
	t := &bearer{next: &http.Transport{MaxIdleConnsPerHost: 128}}
	b.Cleanup(t.next.CloseIdleConnections)
	if file != "" {
		token, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		t.token = "Bearer " + strings.TrimSpace(string(token))
	}
	return t
}

// RoundTrip implements [http.RoundTripper].
func (t *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", t.token)
	}
	return t.next.RoundTrip(r)
}

// connect connects to a program; "" is the newest revision. The first call is
// not counted: it starts the plugin.
func connect(b *testing.B, cmd *exec.Cmd, transport mcp.Transport, revision string, c call, stop func()) *peer {
	b.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(b.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { session.Close() })
	p := &peer{session: session, stop: stop, made: c, pid: cmd.Process.Pid}
	p.call(b)
	p.pids = append(descendants(b, p.pid), p.pid)
	return p
}

func (p *peer) call(b *testing.B) {
	b.Helper()
	args := p.made.args
	if p.made.next != nil {
		args = p.made.next(p.calls)
		p.calls++
	}
	// Not one for all calls: the SDK writes into it.
	r, err := p.session.CallTool(b.Context(), &mcp.CallToolParams{Name: p.made.tool, Arguments: args})
	if err != nil || r.IsError {
		b.Errorf("%s: %v, %+v", p.made.tool, err, r)
	}
}

// round makes the calls of one turn, by several callers at a time.
func (p *peer) round(b *testing.B, calls, callers int) {
	b.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	before := p.used(b)
	for range callers {
		wg.Go(func() {
			took := make([]time.Duration, 0, calls/callers)
			for range calls / callers {
				began := time.Now()
				p.call(b)
				took = append(took, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			p.took = append(p.took, took...)
		})
	}
	wg.Wait()
	p.cpu = append(p.cpu, (p.used(b)-before)/time.Duration(calls))
}

// settle returns when all processes of the peer are idle. A plugin starts to prepare its next
// call after a pause, which is shorter than quiet.
func (p *peer) settle(b *testing.B) {
	b.Helper()
	const quiet = 30 * time.Millisecond
	for worked := time.Duration(-1); ; {
		all := peer{pids: append(descendants(b, p.pid), p.pid)}
		now := all.used(b)
		if now == worked {
			return
		}
		worked = now
		for begun := time.Now(); time.Since(begun) < quiet; {
			runtime.Gosched()
		}
	}
}

// compare lets the two take turns, and reports medians and their ratios.
func compare(b *testing.B, host, bare *peer, calls, callers int) {
	b.Helper()
	for b.Loop() {
		host.round(b, calls, callers)
		bare.round(b, calls, callers)
	}
	names := [2]string{"host", "bare"}
	report(b, "latency", "µs/call", names, median(host.took), median(bare.took))
	report(b, "cpu", "cpu-µs/call", names, median(host.cpu), median(bare.cpu))
}

// report reports a figure of each of two, and their ratio.
func report(b *testing.B, what, unit string, names [2]string, one, other time.Duration) {
	b.Helper()
	b.ReportMetric(float64(one.Nanoseconds())/1e3, names[0]+"-"+unit)
	b.ReportMetric(float64(other.Nanoseconds())/1e3, names[1]+"-"+unit)
	b.ReportMetric(float64(one)/float64(other), what+"-ratio")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// used is the processor time of all the peer's threads so far.
func (p *peer) used(b *testing.B) time.Duration {
	b.Helper()
	var sum time.Duration
	for _, pid := range p.pids {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				continue // the thread has just ended
			}
			onCPU, _, _ := strings.Cut(string(text), " ")
			ns, err := strconv.ParseInt(onCPU, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(ns)
		}
	}
	return sum
}

// descendants lists all running processes that a process has started.
func descendants(b *testing.B, pid int) []int {
	b.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		b.Fatal(err)
	}
	var all []int
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				b.Fatal(err)
			}
			all = append(append(all, child), descendants(b, child)...)
		}
	}
	return all
}
