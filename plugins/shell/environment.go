package main

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/gitenv"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

// defaultPath is the PATH of commands if the plugin has none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// validVariable reports whether a command may be given a variable. Refused are
// variables that make programs run or load something else, and the host's own.
func validVariable(name string) bool {
	ofHost := strings.HasPrefix(name, "PLUGIN_") || strings.HasPrefix(name, "TOOLHOST_")
	return variableName.MatchString(name) && !ofHost && !protect.Variable(name)
}

// path returns the PATH of commands that set no other.
func (s *settings) path() string { return cmp.Or(s.Path, os.Getenv("PATH"), defaultPath) }

// places are the directories of a user.
type places struct {
	home, tmp string
}

// environment builds the environment of a command from nothing.
func (s *settings) environment(at places, term string, asked []string) ([]string, error) {
	env := []string{
		"PATH=" + s.path(),
		"HOME=" + at.home,
		"TMPDIR=" + at.tmp,
		"LANG=" + cmp.Or(os.Getenv("LANG"), "C.UTF-8"),
		"TERM=" + term,
	}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if name == "TZ" || strings.HasPrefix(name, "LC_") || slices.Contains(s.Pass, name) {
			env = append(env, entry)
		}
	}
	env = append(env, s.proxyEnv...)
	env = append(env, gitenv.Environment()...) // settings and calls cannot set GIT_ variables after it
	for name, value := range s.Env {
		env = append(env, name+"="+value)
	}
	for _, entry := range asked {
		name, _, ok := strings.Cut(entry, "=")
		switch {
		case !ok || !variableName.MatchString(name):
			return nil, tool.Errorf(tool.InvalidArgument, "env has %q, expected NAME=value", tool.VisibleName(entry))
		case hasNUL(entry):
			return nil, tool.Errorf(tool.InvalidArgument, "the variable %s contains a NUL byte, which cannot be passed to a program", name)
		case !validVariable(name):
			return nil, tool.Errorf(tool.InvalidArgument, "env sets %s, which commands may not be given", name)
		}
		env = append(env, entry)
	}
	return env, nil
}
