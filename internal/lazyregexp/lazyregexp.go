// Package lazyregexp compiles the regular expressions of package-level variables at their
// first use. A program would pay for all of them at every start, whether it uses them or not.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// New returns a function that compiles a pattern when it is called first. It is safe for
// concurrent use. A wrong pattern panics there, and in every test of a package that has it.
func New(pattern string) func() *regexp.Regexp {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	if len(os.Args) > 0 && strings.HasSuffix(os.Args[0], ".test") { // a program may start without arguments
		compiled()
	}
	return compiled
}
