//go:build !linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// readQueue is BSD's FREAD: the terminal's input.
const readQueue = 1

// The requests for the settings of a terminal.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

// discardInput discards input that was typed or pasted before the question appeared, so that
// it cannot answer the question.
func discardInput(terminal *os.File) error {
	return unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, readQueue)
}
