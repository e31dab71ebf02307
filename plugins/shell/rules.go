package main

import (
	"slices"

	"github.com/toolhost/toolhost/sdk/proc"
)

// ruleWords returns the words that stand for paths in the settings read, write and
// exec.
func ruleWords() []string { return []string{"system", "workspace", "home", "tmp"} }

// rules returns the files that a command may use. nil means the files that the
// plugin may use. With any rules the kernel also keeps the command from signaling
// and inspecting processes other than those it started.
func (s *settings) rules(roots []string, at places) *proc.Rules {
	if len(s.Read)+len(s.Write)+len(s.Exec) == 0 {
		if !s.Apart {
			return nil
		}
		return &proc.Rules{Execute: []string{"/"}, Write: []string{"/"}, Devices: []string{"/"}, Optional: true}
	}
	words := map[string][]string{
		"system":    {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"},
		"workspace": roots,
		"home":      {at.home},
		"tmp":       {at.tmp},
	}
	expand := func(list []string) []string {
		var paths []string
		for _, path := range list {
			if of, ok := words[path]; ok {
				paths = append(paths, of...)
			} else {
				paths = append(paths, path)
			}
		}
		return paths
	}
	return &proc.Rules{
		Read: expand(slices.Concat(s.Read, []string{"/proc"})), Write: expand(s.Write), Execute: expand(s.Exec),
		Devices: []string{"/dev"},
	}
}
