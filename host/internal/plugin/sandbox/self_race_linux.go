//go:build race

package sandbox

import (
	"cmp"
	"os"
)

// Unraced is the variable of the environment that names this program without the race
// detector, which sees nothing in a launcher and makes it start five times as slowly.
const Unraced = "TOOLHOST_UNRACED"

// SelfPath returns the file of this program, or that of [Unraced] in tests.
func SelfPath() (string, error) { return cmp.Or(os.Getenv(Unraced), "/proc/self/exe"), nil }
