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
		text := unsafe.StringData(own)
		if own != "" && slices.ContainsFunc(args, func(arg string) bool { return unsafe.StringData(arg) == text }) {
			clear(unsafe.Slice(text, len(own))) // the runtime does not copy what the system gave it
		}
	}
}
