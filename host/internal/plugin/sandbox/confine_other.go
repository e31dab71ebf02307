//go:build !linux

package sandbox

import (
	"os"
	"runtime"
	"syscall"
)

func selfPath() (string, error) { return os.Executable() }

// attr puts a launcher into a session of its own.
func (p *plan) attr(*group) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// always are what every program has beside the limits.
func always() []string { return []string{"session", "umask 077"} }

// missingHere are the layers that this system never has.
func missingHere() map[Layer]Gap {
	gaps := map[Layer]Gap{}
	for _, layer := range Layers() {
		if layer != LayerRlimits {
			gaps[layer] = Gap{Layer: layer, Reason: runtime.GOOS + " has none", Remedy: "run the host on Linux"}
		}
	}
	return gaps
}
