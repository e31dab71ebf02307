//go:build !linux

package store

import "testing"

// mountSmall skips the test: other systems have no file system in memory that
// is mounted as simply.
func mountSmall(t *testing.T, _, _ string) {
	t.Helper()
	t.Skip("only Linux has a file system in memory that is mounted as simply")
}
