package protect

import (
	"slices"
	"strings"
)

// Variable reports whether a variable of the environment may have programs load or run
// what its value names, or change what a shell reads: those of the loader, of shells and
// of git.
func Variable(name string) bool {
	for _, prefix := range []string{"LD_", "DYLD_", "GIT_", "SSH_ASKPASS", "BASH_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "IFS"}, name)
}
