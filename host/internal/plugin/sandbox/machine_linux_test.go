package sandbox

import (
	"slices"
	"testing"
)

// TestExamine checks properties that all our Linux machines share, and that a report is
// consistent. Other tests check the layers' effects.
func TestExamine(t *testing.T) {
	m, err := newLauncher(t).Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m.System != "linux" || m.Kernel == "" || len(m.Levels) != 4 {
		t.Fatalf("Examine() = %+v, want a kernel and four levels", m)
	}
	for i, level := range append(m.Levels, m.Auto) {
		if want := Isolation((i + 1) % 5); level.Isolation != want {
			t.Errorf("level %d is %v, want %v", i, level.Isolation, want)
		}
		if level.Problem != "" || !slices.Contains(level.Sandbox.Layers, "rlimits") {
			t.Errorf("%v = %+v, want a program under limits", level.Isolation, level)
		}
		required := slices.ContainsFunc(level.Sandbox.Missing, func(g Gap) bool { return g.Required })
		if level.Works == required {
			t.Errorf("%v works: %v, with %v", level.Isolation, level.Works, level.Sandbox.Missing)
		}
	}
	if !m.Levels[0].Works || !m.Auto.Works || !m.Levels[m.Strongest-Off].Works {
		t.Errorf("off, auto or the strongest (%v) does not work: %+v", m.Strongest, m)
	}
}
