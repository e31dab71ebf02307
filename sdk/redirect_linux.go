package sdk

import "golang.org/x/sys/unix"

// redirect makes descriptor to a duplicate of from. Dup3 is the only such call
// that every Linux port has.
func redirect(from, to int) error { return unix.Dup3(from, to, 0) }
