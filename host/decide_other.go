//go:build !linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// readQueue is FREAD of BSD: the input of a terminal.
const readQueue = 1

// discardInput drops input that was typed or pasted before a question: it is no answer.
func discardInput(terminal *os.File) error {
	return unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, readQueue)
}
