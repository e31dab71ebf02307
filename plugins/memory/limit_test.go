package main

import (
	"strconv"
	"syscall"
)

// limitFileSize bounds the files that this process can write.
func limitFileSize(bytes string) {
	limit, err := strconv.ParseUint(bytes, 10, 64)
	if err != nil {
		return
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		panic(err)
	}
}
