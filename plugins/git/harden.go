package main

import (
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/gitenv"
	"github.com/toolhost/toolhost/sdk/tool"
)

// fixedConfig returns settings that override those of the repository. With them, git
// runs no programs, does not connect to remotes by itself, reads no files elsewhere,
// writes output in a fixed form, and makes exactly the changes that a preview shows.
func fixedConfig(worktree string) []string {
	var all []string
	for pair := range slices.Chunk(gitenv.Config(), 2) {
		all = append(all, pair[0]+"="+pair[1])
	}
	return append(all,
		// Programs that git runs by itself or to connect to remotes.
		"core.askPass=", "core.sshCommand=false", "core.gitProxy=", "credential.helper=", "credential.interactive=false", "protocol.allow=never",
		"gc.auto=0", "maintenance.auto=false", "fetch.writeCommitGraph=false", "rebase.autoStash=false", "rebase.updateRefs=false",
		// Files that git uses.
		"core.bare=false", "safe.directory="+worktree, "core.attributesFile=/dev/null", "core.excludesFile=/dev/null",
		"mailmap.file=", "mailmap.blob=", "blame.ignoreRevsFile=", "diff.orderFile=/dev/null", "rerere.enabled=false",
		// The form of the output.
		"color.ui=false", "column.ui=never", "log.mailmap=false", "log.showRoot=true", "log.follow=false", "i18n.commitEncoding=utf-8",
		"i18n.logOutputEncoding=utf-8", "diff.suppressBlankEmpty=false", "core.quotePath=true", "core.abbrev=auto",
		"core.commentChar=#", "user.useConfigOnly=true", "advice.detachedHead=false", "merge.conflictStyle=merge", "merge.log=false",
		"core.warnAmbiguousRefs=true",
		// How git changes things. The instructions of a rebase can run programs, and the
		// strategy "ours" merges nothing.
		"pull.rebase=false", "pull.twohead=ort", "rebase.backend=merge", "rebase.instructionFormat=%s", "rebase.abbreviateCommands=false",
		"commit.cleanup=verbatim", "push.followTags=false", "push.default=nothing",
		// How git sees files: it notices each change, and file names are case-sensitive on Linux.
		"core.ignoreStat=false", "core.ignoreCase="+strconv.FormatBool(runtime.GOOS != "linux"),
		// Memory and processors. Git neither compares nor loads larger files.
		"core.bigFileThreshold=32m", "core.deltaBaseCacheLimit=32m", "pack.windowMemory=64m", "pack.deltaCacheSize=16m", "pack.threads=2",
		// Remotes.
		"http.sslVerify=true", "http.proxy=", "http.followRedirects=initial", "http.cookieFile=", "http.saveCookies=false", "http.extraHeader=",
		"http.lowSpeedLimit=1", "http.lowSpeedTime=60", "transfer.bundleURI=false", "fetch.bundleURI=", "fetch.prune=false", "fetch.pruneTags=false",
	)
}

// harmless returns a safe value for a setting in a section whose subsections the
// repository can name freely. It reports false if the setting needs no override.
func harmless(s porcelain.Setting) (value string, overridden bool) {
	switch s.Section {
	case "filter":
		if s.Name == "required" {
			return "false", true
		}
		return "", true
	case "diff":
		switch {
		case s.Subsection == "":
			return "", s.Name == "external"
		case s.Name == "binary":
			return "auto", true
		case s.Name == "cachetextconv":
			return "false", true
		}
		return "", s.Name == "command" || s.Name == "textconv"
	case "merge":
		return "false", s.Subsection != "" && s.Name == "driver" // leaves a conflict instead of running a program
	case "trailer":
		return "", s.Name == "command" || s.Name == "cmd"
	case "submodule":
		switch s.Name {
		case "update":
			return "none", true
		case "ignore":
			return "dirty", true
		case "fetchrecursesubmodules", "active":
			return "false", true
		}
	case "protocol":
		return "never", s.Subsection != ""
	case "remote":
		// Git gets addresses instead of the names of remotes, so a remote's other settings
		// do not apply. A promisor would still make git fetch missing objects by itself.
		return "false", s.Subsection != "" && s.Name == "promisor"
	case "pager":
		return "false", true
	case "branch":
		return "", s.Name == "mergeoptions" // the call decides
	}
	return "", false
}

// Limits for the overrides that one repository needs.
const (
	maxOverrides    = 2000
	maxOverrideSize = 256 << 10
)

// overridesOf returns overrides for the settings of a repository: names, which may
// contain "=", and values in turn.
func overridesOf(settings []porcelain.Setting) ([]string, error) {
	var keys []string
	size := 0
	known := map[string]bool{}
	for _, s := range settings {
		value, overridden := harmless(s)
		key := s.Key()
		if !overridden || known[key] {
			continue
		}
		known[key] = true
		keys = append(keys, key, value)
		if s.Section == "filter" { // if a filter is required, an empty command is a failure
			if required := "filter." + s.Subsection + ".required"; !known[required] {
				known[required] = true
				keys = append(keys, required, "false")
			}
		}
		size += len(key) + len(value) + 64
	}
	if len(keys) > 2*maxOverrides || size > maxOverrideSize {
		return nil, tool.Errorf(tool.ResourceExhausted, "The git repository cannot be used: its configuration names too many drivers, filters and addresses").
			WithHint("the limits are %d names and %d bytes; the user can remove some from .git/config", maxOverrides, maxOverrideSize)
	}
	return keys, nil
}

// environment returns git's environment. Git inherits nothing else.
func (r *repository) environment(c *command) []string {
	literal := "1" // a path is not a pattern
	if c.patterns || c.args[0] == "stash" {
		literal = "0" // git stash uses patterns itself, and its arguments include no paths
	}
	env := []string{
		"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C", "TZ=UTC", "TERM=dumb",
		"GIT_DIR=" + r.gitDir, "GIT_WORK_TREE=" + r.worktree,
		"GIT_LITERAL_PATHSPECS=" + literal, "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "GIT_OPTIONAL_LOCKS=0", "GIT_FLUSH=0",
	}
	if r.gitDir != r.commonDir {
		env = append(env, "GIT_COMMON_DIR="+r.commonDir)
	}
	if r.objects != "" {
		env = append(env, "GIT_OBJECT_DIRECTORY="+r.objects)
	}
	if r.scratch != "" {
		env = append(env, "TMPDIR="+r.scratch)
	}
	// Only the repository's configuration.
	env = append(env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1")
	env = append(env, c.env...)
	if r.noOverrides {
		return env
	}
	env = append(env, gitenv.Variables()...)
	env = append(env, "GIT_PROXY_COMMAND=", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/nonexistent")
	if !c.network {
		env = append(env, "GIT_ALLOW_PROTOCOL=none", "GIT_SSH_COMMAND=false")
	}
	var pairs []string
	for _, fixed := range fixedConfig(r.worktree) {
		key, value, _ := strings.Cut(fixed, "=")
		pairs = append(pairs, key, value)
	}
	return append(env, gitenv.Settings(slices.Concat(pairs, r.config.overrides, c.config))...)
}
