package sdk

import "golang.org/x/sys/unix"

// redirect makes descriptor to another name of from. Dup3 is the only call of
// its kind that every Linux port has.
func redirect(from, to int) error { return unix.Dup3(from, to, 0) }
