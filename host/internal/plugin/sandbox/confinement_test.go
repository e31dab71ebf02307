package sandbox

import (
	"slices"
	"testing"
)

// TestCanHave: each level can contain everything that the level before it can, and its own
// layers.
func TestCanHave(t *testing.T) {
	for _, tt := range []struct {
		level Isolation
		want  int // how many of all layers
	}{
		{Off, 5},
		{Basic, 7},
		{Isolated, len(Layers())},
		{Strict, len(Layers())},
		{Auto, len(Layers())},
	} {
		var can []Layer
		for _, l := range Layers() {
			if tt.level.CanHave(l) {
				can = append(can, l)
			}
		}
		if len(can) != tt.want {
			t.Errorf("%v can have %v, want %d layers", tt.level, can, tt.want)
		}
		for _, l := range layersOf(tt.level) {
			if !slices.Contains(can, l) {
				t.Errorf("%v is made of %s, which it cannot have", tt.level, l)
			}
		}
	}
	if Off.CanHave(LayerLandlock) || Basic.CanHave(LayerNetNS) || !Basic.CanHave(LayerCgroup) || Auto.CanHave("landlok") {
		t.Error("a level can have what it cannot, or the reverse")
	}
}

func TestIsolationText(t *testing.T) {
	for i, name := range IsolationNames() {
		var got Isolation
		if err := got.UnmarshalText([]byte(name)); err != nil || got != Isolation(i) || got.String() != name {
			t.Errorf("UnmarshalText(%q) = %v, %v, want %v", name, got, err, Isolation(i))
		}
	}
	var got Isolation
	if err := got.UnmarshalText([]byte("strickt")); err == nil {
		t.Errorf("an unknown name is %v", got)
	}
}
