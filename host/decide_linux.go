package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput drops what was typed or pasted into a terminal before it is asked:
// it answers no question.
func discardInput(terminal *os.File) error {
	return unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
