package main

import (
	"syscall"
	"time"
)

// changeTime is when a file's content or what is said of it was changed, which no
// program can set.
func changeTime(stat *syscall.Stat_t) time.Time {
	return time.Unix(stat.Ctim.Unix())
}
