package proctree

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// maxCounted bounds the processes that Resident counts.
const maxCounted = 1024

// Resident returns the resident memory of a process and all its descendants, in bytes. Memory that
// they share counts for each. ok is false if the process is gone.
func Resident(pid int) (size int64, ok bool) {
	left := maxCounted
	return resident(pid, &left)
}

func resident(pid int, left *int) (size int64, ok bool) {
	if *left--; *left < 0 {
		return 0, false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(text) // size, resident, and more, in pages
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0, false
	}
	size = pages * int64(os.Getpagesize())
	for _, child := range children(pid) {
		below, _ := resident(child, left)
		size += below
	}
	return size, true
}
