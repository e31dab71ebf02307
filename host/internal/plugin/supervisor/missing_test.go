package supervisor

import (
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// unconfined is a plugin whose sandbox requires what its level does not have, so
// that it is missing on every machine.
func unconfined(t *testing.T) Plugin {
	t.Helper()
	return Plugin{
		Name: "calm", Path: program(t, "calm"), Limits: sandbox.DefaultLimits(),
		Confinement: sandbox.Confinement{Isolation: sandbox.Off, Require: []sandbox.Layer{sandbox.LayerMounts, sandbox.LayerProc}},
	}
}

const noMounts = `its sandbox requires mounts, which this machine does not have: isolation = "off" does not have it, or set on_missing = "warn"`

func TestMissingLayerIsRefused(t *testing.T) {
	k := keepPlugins(t, unconfined(t))
	_, err := k.call(t, "calm", "echo", `{}`)
	wantUnavailable(t, err, "cannot be started: its sandbox cannot be had on this machine", false)
	s := k.state(t, "calm")
	if s.Phase != Broken || s.Refused != noMounts || s.Sandbox != nil || s.Isolation != sandbox.Off || s.Crashes != 0 {
		t.Errorf("state is %+v, want it refused with %q", s, noMounts)
	}
}

func TestMissingLayerIsWarnedOf(t *testing.T) {
	p := unconfined(t)
	p.Confinement.WarnOnMissing = true
	k := keepPlugins(t, p)
	k.mustCall(t, "calm", "echo")
	k.mustCall(t, "calm", "echo")
	const warning = "the plugin runs without layers that its sandbox requires"
	if got := strings.Count(k.log.String(), warning); got != 1 {
		t.Errorf("%d warnings in the log, want one for one start", got)
	}
	if want := `mounts (isolation = "off" does not have it), proc`; !strings.Contains(strings.ReplaceAll(k.log.String(), `\`, ""), want) {
		t.Errorf("the log does not say %q", want)
	}
	s := k.state(t, "calm")
	if s.Sandbox == nil || unmet(*s.Sandbox) != 2 {
		t.Errorf("the sandbox is %+v, want two layers missing that are required", s.Sandbox)
	}
	if err := k.Restart(t.Context(), "calm"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(k.log.String(), warning); got != 2 {
		t.Errorf("%d warnings in the log, want one for each of two starts", got)
	}
}

// unmet counts the missing layers that are required. Others depend on the machine.
func unmet(r sandbox.Report) (n int) {
	for _, gap := range r.Missing {
		if gap.Required {
			n++
		}
	}
	return n
}

// TestEachGapIsWarnedOfOnce: a gap of the mounts that has nothing to do with the search
// for protected names is not said to be of it.
func TestEachGapIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	m := &manager{log: hclog.New(&hclog.LoggerOptions{Output: &log})}
	m.warnOfMissing(sandbox.Report{Missing: []sandbox.Gap{
		{Layer: sandbox.LayerMounts, Reason: "the kernel refuses it", Required: true},
		{Layer: sandbox.LayerMounts, Reason: "the workspace is too large", Unsearched: true},
	}})
	for _, want := range []string{`forbidden by name: reason="the workspace is too large"`, `requires: missing="mounts (the kernel refuses it)"`} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log says %q, want %q once", &log, want)
		}
	}
	if got := strings.Count(log.String(), "[WARN]"); got != 2 {
		t.Errorf("%d warnings, want one for each gap: %s", got, &log)
	}
}
