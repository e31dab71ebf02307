package sandbox

import "testing"

func TestReportString(t *testing.T) {
	for _, tt := range []struct {
		report Report
		want   string
	}{
		{Report{}, "nothing enforced"},
		{Report{Layers: []string{"rlimits", "pdeathsig"}}, "rlimits, pdeathsig"},
		{
			Report{Layers: []string{"rlimits"}, Missing: []Gap{{Layer: LayerLandlock, Reason: "the kernel has none"}, {Layer: LayerSeccomp, Reason: "off"}}},
			"rlimits; missing: landlock (the kernel has none), seccomp (off)",
		},
		{
			Report{Layers: []string{"rlimits"}, Missing: []Gap{{Layer: LayerUserNS, Reason: "no"}, {Layer: LayerPIDNS, Reason: "so"}, {Layer: LayerProc, Reason: "so"}}},
			"rlimits; missing: userns (no), pidns, proc (so)",
		},
	} {
		if got := tt.report.String(); got != tt.want {
			t.Errorf("String() = %q, want %q", got, tt.want)
		}
	}
}
