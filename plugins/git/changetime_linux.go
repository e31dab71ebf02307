package main

import (
	"syscall"
	"time"
)

// changeTime returns the time of the last change of a file's content or attributes. No
// program can set it.
func changeTime(stat *syscall.Stat_t) time.Time {
	return time.Unix(stat.Ctim.Unix())
}
