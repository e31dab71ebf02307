//go:build !linux

package main

import (
	"syscall"
	"time"
)

// changeTime is now: elsewhere nothing is remembered of files.
func changeTime(*syscall.Stat_t) time.Time { return time.Now() }
