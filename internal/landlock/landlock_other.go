//go:build !linux

package landlock

import (
	"errors"
	"runtime"
)

// ABI reports that there is no Landlock.
func ABI() (int, error) { return 0, errors.New(runtime.GOOS + " has no Landlock") }

// Ruleset is never made.
type Ruleset struct{}

// New reports that there is no Landlock.
func New(Rules) (*Ruleset, error) {
	_, err := ABI()
	return nil, err
}

// ABI is 0.
func (*Ruleset) ABI() int { return 0 }

// Restrict does nothing.
func (*Ruleset) Restrict() error { return nil }
