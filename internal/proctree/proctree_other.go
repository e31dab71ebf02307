//go:build !linux

package proctree

import "time"

// Stat holds no fields on this system.
type Stat struct {
	Parent, Session int
	Started         uint64
}

// AdoptOrphans does nothing: this system cannot.
func AdoptOrphans() error { return nil }

// KillBelow does nothing.
func KillBelow(int) {}

// KillOrphans does nothing.
func KillOrphans(time.Duration, func(int, Stat) bool) (killed, left int) { return 0, 0 }

// StartTime returns 0.
func StartTime(int) uint64 { return 0 }

// Resident knows no process.
func Resident(int) (size int64, ok bool) { return 0, false }

func isFirstThread() bool { return false }
