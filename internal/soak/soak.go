// Package soak sets the number of rounds of a repeated test: a few each day, all of them with
// `make soak`. It is for tests of host, sdk and plugins only.
package soak

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Variables of the environment that tests read.
const (
	// All is "1" to run every round of every test.
	All = "TOOLHOST_SOAK"
	// SeedVariable is the seed of a run to repeat, a decimal number.
	SeedVariable = "TOOLHOST_SEED"
)

const day = 24 * time.Hour

// Rounds returns few, or all if [All] is set to 1.
func Rounds(few, all int) int {
	if os.Getenv(All) == "1" {
		return all
	}
	return few
}

// Seed returns the seed for a test's random choices, and logs it. It changes every day, so that
// a year of runs tries many cases and the runs of one day are equal. The value of [SeedVariable]
// replaces it; a value that is not a number fails tb.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := uint64(time.Now().Unix()) / uint64(day/time.Second)
	if text := os.Getenv(SeedVariable); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			tb.Fatalf("%s=%q is not a decimal number of 64 bits", SeedVariable, text)
		}
		seed = n
	}
	tb.Logf("seed %d; repeat with %s=%d", seed, SeedVariable, seed)
	return seed
}

// Today reports whether the item at index i of a list is for the run of seed:
// one of every n, another each day; all of them if [All] is set to 1.
func Today(seed uint64, i, n int) bool {
	return os.Getenv(All) == "1" || (uint64(i)+seed)%uint64(n) == 0
}
