package protect

import (
	"slices"
	"strings"
)

// Variable reports whether a variable of the environment can make programs load or run
// other files, or change what a shell reads: variables of the loader, of shells and of
// git.
func Variable(name string) bool {
	for _, prefix := range []string{"LD_", "DYLD_", "GIT_", "SSH_ASKPASS", "BASH_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "IFS"}, name)
}
