package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// callsPerRound is how often each peer is called before it is the other's
// turn.
const callsPerRound = 256

// peer is one of the two programs that are compared.
type peer struct {
	session *mcp.ClientSession
	pids    []int // of the program and all that it has started

	took []time.Duration // of each call
	cpu  time.Duration
}

// BenchmarkEchoStdio calls one small tool over standard input and output,
// through the host and its plugin process, and in a bare server of the same
// SDK.
func BenchmarkEchoStdio(b *testing.B) {
	if err := os.MkdirAll(filepath.Join(bin, "ws"), 0o755); err != nil {
		b.Fatal(err)
	}
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			host := start(b, exec.Command(filepath.Join(bin, "toolhost"), "mcp", "--config", filepath.Join(bin, "config.hcl")))
			bareCmd := exec.Command(os.Args[0])
			bareCmd.Env = append(os.Environ(), bareServer+"=1")
			bare := start(b, bareCmd)
			for b.Loop() {
				host.round(b, callers)
				bare.round(b, callers)
			}
			h, s := host.latency(), bare.latency()
			b.ReportMetric(h, "host-µs/call")
			b.ReportMetric(s, "bare-µs/call")
			b.ReportMetric(h/s, "latency-ratio")
			b.ReportMetric(float64(host.cpu)/float64(bare.cpu), "cpu-ratio")
			b.ReportMetric(float64(host.cpu.Microseconds())/float64(len(host.took)), "host-cpu-µs/call")
			b.ReportMetric(float64(bare.cpu.Microseconds())/float64(len(bare.took)), "bare-cpu-µs/call")
		})
	}
}

// start runs a program and connects to it. The first call is not counted: it
// starts the plugin.
func start(b *testing.B, cmd *exec.Cmd) *peer {
	b.Helper()
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(b.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { session.Close() })
	p := &peer{session: session}
	p.call(b)
	p.pids = append(descendants(b, cmd.Process.Pid), cmd.Process.Pid)
	return p
}

func (p *peer) call(b *testing.B) {
	b.Helper()
	r, err := p.session.CallTool(b.Context(), &mcp.CallToolParams{
		Name: "hello", Arguments: map[string]any{"name": "Ada", "greeting": "Hello"},
	})
	if err != nil || r.IsError {
		b.Errorf("hello: %v, %+v", err, r)
	}
}

// round makes the calls of one turn, by several callers at a time.
func (p *peer) round(b *testing.B, callers int) {
	b.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	before := p.used(b)
	for range callers {
		wg.Go(func() {
			took := make([]time.Duration, 0, callsPerRound/callers)
			for range callsPerRound / callers {
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
	p.cpu += p.used(b) - before
}

// latency is the median of a call, in microseconds.
func (p *peer) latency() float64 {
	slices.Sort(p.took)
	return float64(p.took[len(p.took)/2].Nanoseconds()) / 1e3
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

// descendants lists all that a process has started.
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
