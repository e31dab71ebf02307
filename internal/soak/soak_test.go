package soak

import (
	"testing"
)

func TestRounds(t *testing.T) {
	for value, want := range map[string]int{"": 3, "0": 3, "1": 50} {
		t.Setenv(All, value)
		if got := Rounds(3, 50); got != want {
			t.Errorf("with %s=%q, Rounds(3, 50) = %d, want %d", All, value, got, want)
		}
	}
}

func TestSeed(t *testing.T) {
	t.Setenv(SeedVariable, "")
	if Seed(t) == 0 {
		t.Error("the seed of a day is 0")
	}
	t.Setenv(SeedVariable, "18446744073709551615")
	if got := Seed(t); got != 1<<64-1 {
		t.Errorf("Seed = %d, want what %s says", got, SeedVariable)
	}
}

func TestToday(t *testing.T) {
	t.Setenv(All, "")
	for i := range 7 {
		days := 0
		for seed := range uint64(3) {
			if Today(seed, i, 3) {
				days++
			}
		}
		if days != 1 {
			t.Errorf("item %d is for %d days of three, want one", i, days)
		}
	}
	t.Setenv(All, "1")
	if !Today(1, 1, 3) {
		t.Error("an item is left out although all rounds are asked for")
	}
}
