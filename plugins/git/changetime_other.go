//go:build !linux

package main

import (
	"syscall"
	"time"
)

// changeTime returns the current time, which turns off the cache of configurations.
func changeTime(*syscall.Stat_t) time.Time { return time.Now() }
