package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput discards input that was typed or pasted before the question appeared, so that
// it cannot answer the question.
func discardInput(terminal *os.File) error {
	return unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
