package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// The requests for the settings of a terminal.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// discardInput discards input that was typed or pasted before the question appeared, so that
// it cannot answer the question.
func discardInput(terminal *os.File) error {
	return unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
