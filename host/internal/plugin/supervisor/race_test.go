//go:build race

package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// pluginBinary builds this test binary again, without the race detector, for the
// processes that tests start: it makes each several times as expensive, and sees
// nothing of the supervisor there.
func pluginBinary(dir string) (string, error) {
	path := filepath.Join(dir, "plugin")
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", path)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the plugin: %w\n%s", err, out)
	}
	return path, os.Chmod(path, 0o755)
}
