package journal

import (
	"os"
	"syscall"
	"testing"
)

// mountSmall mounts a file system of that size at dir, for the test. Where that
// is not possible the test is skipped; in CI it fails.
func mountSmall(t *testing.T, dir, size string) {
	t.Helper()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("a file system cannot be mounted: %v", err)
		}
		t.Skipf("a file system cannot be mounted here, which root may do: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
}
