//go:build !race

package supervisor

import "os"

// pluginBinary is this test binary.
func pluginBinary(string) (string, error) { return os.Executable() }
