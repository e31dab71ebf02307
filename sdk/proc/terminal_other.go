//go:build !linux

package proc

import (
	"os"

	"github.com/toolhost/toolhost/sdk/tool"
)

// OpenTerminal fails: it works on Linux only.
func OpenTerminal(_, _ int) (ours, theirs *os.File, err error) {
	return nil, nil, tool.Errorf(tool.Unavailable, "this system has no terminals for commands")
}
