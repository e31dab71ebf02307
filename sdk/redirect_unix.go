//go:build unix && !linux

package sdk

import "golang.org/x/sys/unix"

// redirect makes descriptor to a duplicate of from.
func redirect(from, to int) error { return unix.Dup2(from, to) }
