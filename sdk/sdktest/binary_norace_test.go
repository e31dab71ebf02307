//go:build !race

package sdktest

import (
	"os"
	"testing"
)

// The plugins are processes, which the race detector makes slow and does not look into.

func TestRunBinary(t *testing.T) {
	for _, name := range []string{"sdk", "sdk, stray prints"} {
		t.Run(name, func(t *testing.T) {
			options := sampleOptions()
			options.Env = []string{fixtureVariable + "=" + name}
			RunBinary(t, os.Args[0], options)
		})
	}
	t.Run("without the sdk", func(t *testing.T) {
		_, options := fixture("sound")
		RunBinary(t, os.Args[0], options)
	})
}
