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
			Report{Layers: []string{"rlimits"}, Missing: []string{"landlock: not in this version", "seccomp: off"}},
			"rlimits; missing: landlock: not in this version, seccomp: off",
		},
	} {
		if got := tt.report.String(); got != tt.want {
			t.Errorf("String() = %q, want %q", got, tt.want)
		}
	}
}
