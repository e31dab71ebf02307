//go:build !linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// readQueue is FREAD of BSD: the input of a terminal.
const readQueue = 1

// discardInput drops what was typed or pasted into a terminal before it is asked:
// it answers no question.
func discardInput(terminal *os.File) error {
	return unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, readQueue)
}
