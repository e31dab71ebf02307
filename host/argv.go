package main

import (
	"os"
	"slices"
	"unsafe"
)

// hideArguments overwrites arguments of the command line in the memory that the
// system shows as this process's, where every account can read them: one of them
// may be a secret. It overwrites no string that is not of the command line.
// Nothing may use the arguments afterwards.
func hideArguments(args []string) {
	for _, own := range os.Args {
		if own != "" && slices.ContainsFunc(args, func(arg string) bool { return memoryOf(arg) == memoryOf(own) }) {
			clear(unsafe.Slice(memoryOf(own), len(own))) //nolint:gosec // the runtime does not copy what the system gave it
		}
	}
}

// memoryOf is where the text of a string is in memory.
func memoryOf(s string) *byte { return unsafe.StringData(s) } //nolint:gosec // it is compared, and overwritten where it is the system's
