//go:build !race

package sandbox

import "testing"

// The race detector does not start on every one of these machines.

// On a machine that lacks a layer, the program is started without it and the report says so. If
// the layer is required, the program is refused.
func TestAttackOnLesserMachines(t *testing.T) {
	for name, m := range machines() {
		t.Run(name, func(t *testing.T) {
			for _, tt := range []struct {
				name     string
				c        Confinement
				required bool
			}{
				{"auto", Confinement{}, false},
				{"required", Confinement{Require: []Layer{m.lacks}}, true},
				{"required, but only warned", Confinement{Require: []Layer{m.lacks}, WarnOnMissing: true}, false},
				{"strict", Confinement{Isolation: Strict}, m.missesStrict() != ""},
				{"strict, but only warned", Confinement{Isolation: Strict, WarnOnMissing: true}, false},
			} {
				got, want := m.start(t, tt.c), m.lacks
				if tt.c.Isolation == Strict {
					want = m.missesStrict()
				}
				switch {
				case tt.required && got.Missing != want:
					t.Errorf("%s: started is %q, error %q; want a missing %s", tt.name, got.Output, got.Error, want)
				case !tt.required && got.Output != "done\n":
					t.Errorf("%s: printed %q, error %q", tt.name, got.Output, got.Error)
				case !tt.required && !reports(got.Report, m.lacks):
					t.Errorf("%s: %v, want a missing %s with its reason", tt.name, got.Report, m.lacks)
				}
			}
		})
	}
}
