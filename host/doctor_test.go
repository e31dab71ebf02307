package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// noNamespaces is a machine on which ordinary users cannot create namespaces.
func noNamespaces() sandbox.Machine {
	const takes = "it needs the layer userns"
	missing := []sandbox.Gap{
		{Layer: sandbox.LayerUserNS, Reason: "not permitted", Remedy: "permit it"},
		{Layer: sandbox.LayerPIDNS, Reason: takes, Remedy: "permit it", Required: true},
		{Layer: sandbox.LayerMounts, Reason: takes, Remedy: "permit it", Required: true},
	}
	more := append(missing, sandbox.Gap{Layer: sandbox.LayerCgroup, Reason: "not\x1b delegated", Remedy: "Delegate=yes"})
	off, basic := []string{"rlimits", "pdeathsig"}, []string{"rlimits", "landlock v7", "pdeathsig"}
	isolated := []string{"rlimits", "caps=0", "landlock v7", "pdeathsig"}
	return sandbox.Machine{
		System: "linux", Arch: "amd64", Kernel: "6.1", UID: 1000, Landlock: 7, Strongest: sandbox.Basic,
		Levels: []sandbox.Level{
			{Isolation: sandbox.Off, Works: true, Sandbox: sandbox.Report{Layers: off}},
			{Isolation: sandbox.Basic, Works: true, Sandbox: sandbox.Report{Layers: basic}},
			{Isolation: sandbox.Isolated, Sandbox: sandbox.Report{Layers: isolated, Missing: missing}},
			{Isolation: sandbox.Strict, Sandbox: sandbox.Report{Layers: isolated, Missing: missing}},
		},
		Auto: sandbox.Level{Works: true, Sandbox: sandbox.Report{Layers: isolated, Missing: more}},
	}
}

// everything is a machine that supports all layers.
func everything() sandbox.Machine {
	m := sandbox.Machine{System: "linux", Arch: "arm64", Kernel: "6.18", Strongest: sandbox.Strict}
	var layers []string
	for i, add := range []string{"rlimits", "landlock v7", "userns", "mounts:minimal"} {
		layers = append(layers, add)
		m.Levels = append(m.Levels, sandbox.Level{Isolation: sandbox.Off + sandbox.Isolation(i), Works: true, Sandbox: sandbox.Report{Layers: layers}})
	}
	m.Auto = sandbox.Level{Works: true, Sandbox: sandbox.Report{Layers: layers}}
	return m
}

func TestDiagnosis(t *testing.T) {
	t.Parallel()
	broken := everything()
	broken.Levels[1] = sandbox.Level{Isolation: sandbox.Basic, Problem: "the machine\nis overloaded"}
	for _, tt := range []struct {
		name string
		d    diagnosis
		want string
	}{
		{"no namespaces", diagnosis{Examination: daemon.Examination{Machine: noNamespaces()}}, `
system           linux 6.1 (amd64)
user             an ordinary user (uid 1000)
landlock         version 7
user namespaces  no: not permitted
cgroups          no: not\x1b delegated

LEVEL     WORKS  IN FORCE
off       yes    rlimits, pdeathsig
basic     yes    and landlock v7
isolated  no     and caps=0
strict    no     the same

auto, the default, gives basic here, and also caps=0

missing
  userns, in isolated, strict, auto: not permitted
    remedy: permit it
  pidns, mounts, in isolated, strict, auto: it needs the layer userns
  cgroup, in auto: not\x1b delegated
    remedy: Delegate=yes
`},
		{"a level that fails", diagnosis{Examination: daemon.Examination{Machine: broken}}, `
system           linux 6.18 (arm64)
user             root
landlock         none
user namespaces  yes

LEVEL     WORKS  IN FORCE
off       yes    rlimits
basic     no     the machine is overloaded
isolated  yes    rlimits, landlock v7, userns
strict    yes    and mounts:minimal

auto, the default, gives strict here
nothing is missing
`},
		{"plugins", diagnosis{
			Files: []string{"a.hcl", "b.hcl"},
			Examination: daemon.Examination{Machine: everything(), Plugins: []daemon.ExaminedPlugin{
				{Name: "fs", Place: "a.hcl:3", Starts: true, Sandbox: &sandbox.Report{Layers: []string{"rlimits", "caps=0"}}},
				{
					Name: "git", Place: "a.hcl:9", Isolation: sandbox.Isolated, Starts: true, Sandbox: &sandbox.Report{
						Layers:  []string{"rlimits"},
						Missing: []sandbox.Gap{{Layer: sandbox.LayerProc, Reason: "masked", Remedy: "unmask it", Required: true}},
					},
				},
				{
					Name: "web", Place: "b.hcl:1", Isolation: sandbox.Strict, Problem: "its sandbox requires netns", Sandbox: &sandbox.Report{
						Layers:  []string{"rlimits"},
						Missing: []sandbox.Gap{{Layer: sandbox.LayerNetNS, Reason: "no", Required: true}},
					},
				},
				{Name: "gone", Place: "b.hcl:5", Problem: "there is no program"},
			}},
		}, `
system           linux 6.18 (arm64)
user             root
landlock         none
user namespaces  yes

LEVEL     WORKS  IN FORCE
off       yes    rlimits
basic     yes    and landlock v7
isolated  yes    and userns
strict    yes    and mounts:minimal

auto, the default, gives strict here
nothing is missing

a.hcl, b.hcl
PLUGIN  ISOLATION  STARTS             WHERE
fs      auto       yes                a.hcl:3
git     isolated   yes, without proc  a.hcl:9
web     strict     no                 b.hcl:1
gone    auto       no                 b.hcl:5

b.hcl:1: plugin "web": its sandbox requires netns
b.hcl:5: plugin "gone": there is no program

fs: sandbox: rlimits, caps=0
git, web: sandbox: rlimits

git: missing: proc, which the sandbox requires: masked; remedy: unmask it
web: missing: netns, which the sandbox requires: no
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			if err := (&app{stdout: &out}).printDiagnosis(tt.d); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		layer, missing string
		want           string
	}{
		{"cgroup", "", "yes"},
		{"cgroup:memory", "", "yes"},
		{"cgroup memory", "processes: not delegated", "yes, but processes: not delegated"},
		{"cgroups", "", ""},
		{"rlimits", "not delegated", "no: not delegated"},
		{"rlimits", "", ""},
	} {
		r := sandbox.Report{Layers: []string{tt.layer}}
		if tt.missing != "" {
			r.Missing = []sandbox.Gap{{Layer: sandbox.LayerCgroup, Reason: tt.missing}}
		}
		if got := has(r, sandbox.LayerCgroup); got != tt.want {
			t.Errorf("has(%v, cgroup) = %q, want %q", r, got, tt.want)
		}
	}
}
