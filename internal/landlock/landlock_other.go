//go:build !linux

package landlock

import (
	"errors"
	"runtime"
)

// ABI says that there is no Landlock.
func ABI() (int, error) { return 0, errors.New(runtime.GOOS + " has no Landlock") }

// Restrict says that there is no Landlock.
func Restrict(Rules) (abi int, err error) { return ABI() }
