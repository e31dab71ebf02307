// Package gitenv provides an environment in which git runs no program that a
// repository names, as far as an environment can prevent it: no monitor, hook, editor,
// pager or signature program, and nothing in submodules. Git ignores the configuration
// of the user and of the system.
//
// An environment cannot override settings with names that a repository chooses: filters,
// diff and merge drivers, aliases, included files. A program that runs git without
// approval must read the configuration first.
package gitenv

import (
	"fmt"
	"strconv"
	"strings"
)

// Config returns the settings that override those of a repository: names and values in
// turn.
func Config() []string {
	return []string{
		"core.fsmonitor", "false", "core.hooksPath", "/dev/null", "core.editor", ":", "core.pager", "cat", "core.alternateRefsCommand", "false",
		"sequence.editor", ":", "interactive.diffFilter", "", "merge.default", "text",
		"gpg.program", "false", "gpg.openpgp.program", "false", "gpg.x509.program", "false", "gpg.ssh.program", "false", "gpg.ssh.defaultKeyCommand", "",
		"commit.gpgSign", "false", "tag.gpgSign", "false", "push.gpgSign", "false", "log.showSignature", "false", "merge.verifySignatures", "false",
		"submodule.recurse", "false", "fetch.recurseSubmodules", "false", "push.recurseSubmodules", "no",
		"status.submoduleSummary", "false", "diff.submodule", "short", "diff.ignoreSubmodules", "dirty",
		"safe.bareRepository", "explicit",
	}
}

// Overrides reports whether [Config] overrides a setting. Case does not matter.
func Overrides(key string) bool {
	all := Config()
	for i := 0; i < len(all); i += 2 {
		if strings.EqualFold(all[i], key) {
			return true
		}
	}
	return false
}

// Variables returns the variables of the environment, each NAME=value, without the
// settings.
func Variables() []string {
	return []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",
		"GIT_PAGER=cat", "GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:", "GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=", "SSH_ASKPASS=", "SSH_ASKPASS_REQUIRE=never", "GIT_NO_LAZY_FETCH=1", "GIT_PROTOCOL_FROM_USER=0",
	}
}

// Settings returns the variables that pass settings to git. pairs are names and values
// in turn; the last value of a name counts.
func Settings(pairs []string) []string {
	env := make([]string, 0, len(pairs)+1)
	for i := 0; i+1 < len(pairs); i += 2 {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i/2, pairs[i]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i/2, pairs[i+1]))
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(pairs)/2))
}

// Environment returns the whole environment: [Variables], and [Config] as [Settings].
func Environment() []string { return append(Variables(), Settings(Config())...) }
