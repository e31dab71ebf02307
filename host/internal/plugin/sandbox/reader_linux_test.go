package sandbox

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// TestReader: what a process that can change nothing keeps of the confinement of its twin.
func TestReader(t *testing.T) {
	for _, tt := range []struct {
		name    string
		c       Confinement
		network bool
		want    Confinement
	}{
		{"no access", Confinement{}, false, Confinement{Reader: Reader{On: true}}},
		{
			"everything",
			Confinement{Workspace: WriteWorkspace, Read: []string{"/a"}, Write: []string{"/b"}, Network: NetworkHost, Protect: []string{".git"}, WarnOnMissing: true},
			false,
			Confinement{Workspace: ReadWorkspace, Read: []string{"/a", "/b"}, Network: NetworkNone, Protect: []string{".git"}, WarnOnMissing: true, Reader: Reader{On: true, OfWriter: true}},
		},
		{"a network", Confinement{Network: NetworkProxy}, true, Confinement{Network: NetworkProxy, Reader: Reader{On: true}}},
		{"a workspace that is read", Confinement{Workspace: ReadWorkspace}, false, Confinement{Workspace: ReadWorkspace, Reader: Reader{On: true}}},
	} {
		if diff := cmp.Diff(tt.want, tt.c.AsReader(tt.network)); diff != "" {
			t.Errorf("%s: AsReader() (-want +got):\n%s", tt.name, diff)
		}
	}
	given := Confinement{Read: make([]string, 1, 8), Write: []string{"/b"}}
	if given.AsReader(false); given.Write == nil || len(given.Read) != 1 {
		t.Errorf("AsReader() changed its receiver: %+v", given)
	}
}

// TestReaderNeedsItsProof: each layer of the proof is required, whatever the configuration says about
// missing layers.
func TestReaderNeedsItsProof(t *testing.T) {
	host := Confinement{RunAs: RunAs{Mode: RunAsHost}, WarnOnMissing: true}
	for _, network := range []bool{false, true} {
		for _, layer := range here(ReaderLayers(network)) {
			gap := Gap{Layer: layer, Reason: "there is none", Remedy: "another kernel"}
			drop := func(c Confinement) error {
				plan := newPlan(&Profile{Confinement: c}, nil)
				for plan.on[layer] { // a minimal root falls back to a read-only one
					plan.drop(gap)
				}
				return plan.check()
			}
			c := host
			if network {
				c.Network = NetworkProxy
			}
			missing, refused := errors.AsType[*MissingError](drop(c.AsReader(network)))
			if layer == LayerCaps && newPlan(&Profile{}, nil).given(layer) {
				continue // an ordinary user has none
			}
			if !refused || !missing.Proof || !strings.HasPrefix(missing.Error(), "split_tiers requires ") || strings.Contains(missing.Error(), "on_missing") {
				t.Errorf("without %s: %v, want that the reader does not start", layer, missing)
			}
			if err := drop(c); err != nil && layer != LayerLandlock {
				t.Errorf("control: without %s the other process does not start either: %v", layer, err)
			}
		}
	}
	for _, level := range []Isolation{Off, Basic} {
		c := host
		c.Isolation = level
		c = c.AsReader(false)
		if err := newPlan(&Profile{Confinement: c}, nil).check(); err == nil {
			t.Errorf("a reader starts with isolation %v", level)
		}
	}
}

// TestReaderPlan: the details that only a reader has.
func TestReaderPlan(t *testing.T) {
	executes := Confinement{Exec: []string{ExecSystem}, Workspace: WriteWorkspace, Network: NetworkHost, RunAs: RunAs{Mode: RunAsHost}}
	sockets := func(c Confinement) launch.Sockets { return newPlan(&Profile{Confinement: c}, nil).filter().Sockets }
	if got := sockets(executes.AsReader(false)); got != launch.SocketsListen {
		t.Errorf("the sockets of a reader are %v: it reaches other programs by them", got)
	}
	if got := sockets(executes.AsReader(true)); got != launch.SocketsNetwork {
		t.Errorf("the sockets of a reader with a network are %v", got)
	}
	for _, tt := range []struct {
		name, workspace string
		c               Confinement
		want            bool
	}{
		{"elsewhere", "/srv/none", executes.AsReader(false), true},
		{"below it", "/tmp/none", executes.AsReader(false), false},
		{"below it, and written", "/tmp/none", executes, true},
	} {
		plan := newPlan(&Profile{Binary: open(t, "/proc/self/exe"), Path: "/test", Confinement: tt.c, Workspace: tt.workspace, Own: []string{"/own"}}, nil)
		var write []string
		for _, path := range plan.files().landlock().Write {
			write = append(write, string(path))
		}
		if slices.Contains(write, "/tmp") != tt.want || slices.Contains(write, tt.workspace) != (tt.c.Workspace == WriteWorkspace) {
			t.Errorf("with the workspace %s, the rules allow to write %v", tt.name, write)
		}
	}
}
