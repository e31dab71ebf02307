package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/host/internal/config"
)

// A configuration with mistakes is refused with all of them.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "toolhost-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "config.hcl")
	text := `workspace = "."
state_dir = "/var/lib/toolhost/example"

plugin "fs" {
  tier   = "readonly"
  sandbx = "default"
}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	_, err = config.Load(path, config.LoadOptions{})
	if bad, ok := errors.AsType[*config.Error](err); ok {
		for _, m := range bad.Mistakes {
			fmt.Printf("line %d: %s: %s\n", m.Line, m.Summary, m.Detail)
		}
	}
	// Output:
	// line 5: Unknown tier: Expected "read_only", "side_effecting" or "privileged" for tier, not "readonly". Did you mean "read_only"?
	// line 6: Unsupported argument: An argument named "sandbx" is not expected here. Did you mean "sandbox"?
}
