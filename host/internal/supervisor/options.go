package supervisor

import (
	"time"

	"github.com/toolhost/toolhost/host/internal/sandbox"
)

// Plugin says how to run one plugin.
type Plugin struct {
	// Name is the name of its block in the configuration.
	Name string
	// Path is the absolute path of its binary.
	Path string
	// SHA256 is the hex digest that the binary must have; "" means any.
	SHA256 string
	// Limits bound each of its processes.
	Limits sandbox.Limits
	// PassEnv names the variables of the host's environment that it gets.
	PassEnv []string
	// Eager starts it with the host instead of at its first call.
	Eager bool
	// IdleTimeout stops it when it has had no call for that long; 0 means 10
	// minutes.
	IdleTimeout time.Duration
	// Settings evaluates the plugin's own settings against the JSON Schema
	// that it publishes ("" if it publishes none) and returns a JSON object.
	// Its error tells the operator every mistake with file and line.
	Settings func(schema []byte) (settings []byte, err error)
	// Locate returns the place ("config.hcl:12") of a path into the settings.
	Locate func(path []string) string
}
