package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput drops input that was typed or pasted before a question: it is no answer.
func discardInput(terminal *os.File) error {
	return unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
