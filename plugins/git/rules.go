package main

import (
	"debug/elf"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk/proc"
)

// programDirs returns the directories of the programs that git itself executes.
func programDirs() []string { return []string{"/usr/lib/git-core", "/usr/libexec/git-core"} }

// rules returns the files that a git command may use, within the limits of the plugin's
// sandbox. They include no shell, so that no filter, hook, alias or pager can start, and
// no files outside the repository. If the kernel does not support such rules, the other
// layers still apply: the overrides in git's configuration and the plugin's sandbox.
func (r *repository) rules(c *command) *proc.Rules {
	if r.noRules {
		return nil
	}
	git := r.settings.Program
	rules := &proc.Rules{
		Execute: append([]string{git, r.loaderOf(git)}, gitItself()...),
		Read:    []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/git-core", "/dev/urandom", r.gitDir, r.commonDir},
		Devices: []string{"/dev/null"}, Optional: true,
	}
	rules.Read = append(rules.Read, r.alternates...)
	switch {
	case c.network:
		rules.Write = []string{r.gitDir, r.objects}
		rules.Read = append(rules.Read, networkFiles()...)
		rules.Execute = append(rules.Execute, remoteHelpers()...)
		rules.Execute = append(rules.Execute, c.programs...)
		rules.Read = append(rules.Read, c.files...)
		rules.Write = append(rules.Write, c.places...)
		rules.Read = append(rules.Read, "/dev/random")
	case c.writes:
		rules.Write = []string{r.worktree, r.gitDir, r.commonDir}
		if r.objects != "" {
			rules.Write = append(rules.Write, r.objects)
		}
	default:
		rules.Read = append(rules.Read, r.worktree)
	}
	if r.scratch != "" {
		rules.Write = append(rules.Write, r.scratch)
	}
	return rules
}

// gitItself returns the copies of git that git executes.
func gitItself() []string {
	var all []string
	for _, dir := range programDirs() {
		all = append(all, filepath.Join(dir, "git"))
	}
	return all
}

// remoteHelpers returns the programs that git uses for HTTP.
func remoteHelpers() []string {
	var all []string
	for _, dir := range programDirs() {
		all = append(all, filepath.Join(dir, "git-remote-http"), filepath.Join(dir, "git-remote-https"))
	}
	return all
}

// networkFiles returns the files needed to look up names, certificates and users.
func networkFiles() []string {
	return []string{
		"/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
		"/etc/hosts", "/etc/resolv.conf", "/run/systemd/resolve", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf",
		"/etc/services", "/etc/protocols", "/etc/passwd", "/etc/group", "/etc/gnutls", "/etc/crypto-policies", "/usr/share/crypto-policies",
	}
}

// loaderOf returns the dynamic loader of a program, or "/dev/null" if it names none.
func (g *git) loaderOf(program string) string {
	if known, ok := g.loaders.Load(program); ok {
		return known.(string) //nolint:errcheck // nothing else is stored
	}
	loader := "/dev/null"
	file, err := elf.Open(program)
	if err != nil {
		return loader
	}
	defer func() { _ = file.Close() }() // only read
	for _, segment := range file.Progs {
		if segment.Type != elf.PT_INTERP || segment.Filesz > 4096 {
			continue
		}
		name := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(name, 0); err == nil {
			loader = strings.TrimRight(string(name), "\x00")
		}
	}
	g.loaders.Store(program, loader)
	return loader
}
