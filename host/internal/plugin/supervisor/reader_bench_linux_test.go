package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// BenchmarkSplitTiers compares warm calls of a plugin with and without a process for read_only calls:
// of each tier, and of the two in turn.
func BenchmarkSplitTiers(b *testing.B) {
	launcher, err := sandbox.NewLauncher()
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := launcher.Close(); err != nil {
			b.Error(err)
		}
	}()
	path := filepath.Join(b.TempDir(), "calm")
	if err := os.Link(testBinary, path); err != nil {
		b.Fatal(err)
	}
	for _, split := range []bool{false, true} {
		p := Plugin{Name: "calm", Path: path, Limits: sandbox.DefaultLimits(), SplitTiers: split}
		s, err := New(Options{Plugins: []Plugin{p}, Launcher: launcher, StateDir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		digest := ""
		s.opts.Publish = func(p Publication) bool {
			digest = p.Digest
			return true
		}
		if err := s.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		call := func(tier tool.Tier) {
			_, _, err := s.Run(b.Context(), "calm", digest, tool.Call{ID: "tc_1", Tool: "pid", Arguments: []byte(`{}`), Tier: tier, Context: tool.Context{User: "ada"}}, tool.Sink{})
			if err != nil {
				b.Fatal(err)
			}
		}
		call(tool.ReadOnly)
		call(tool.SideEffecting)
		for _, tiers := range [][]tool.Tier{{tool.ReadOnly}, {tool.SideEffecting}, {tool.ReadOnly, tool.SideEffecting}} {
			b.Run(fmt.Sprintf("split=%v/%v", split, tiers), func(b *testing.B) {
				for n := 0; b.Loop(); n++ {
					call(tiers[n%len(tiers)])
				}
				pss := 0
				for _, i := range s.manager("calm").running() {
					pss += pssOf(b, i.proc.PID())
				}
				b.ReportMetric(float64(pss)/1024, "MiB(PSS)")
			})
		}
		b.Run(fmt.Sprintf("split=%v/cold reads", split), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				for _, ended := range s.manager("calm").stop() {
					<-ended
				}
				b.StartTimer()
				call(tool.ReadOnly)
			}
		})
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}
}

// pssOf returns the proportional set size of a process in KiB.
func pssOf(b *testing.B, pid int) (kib int) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "Pss: %d kB", &kib); err == nil {
			return kib
		}
	}
	return 0
}
