package clientfile

import (
	"bytes"
	"os"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolhost/toolhost/internal/lazyregexp"
)

const hidden = "(hidden)"

var (
	// quoted matches a text of JSON or TOML in one line, or a name of JSON with its colon.
	quoted = lazyregexp.New(`"(?:[^"\\\n]|\\.)*"([ \t]*:)?|'[^'\n]*'`)
	// token matches what looks like a token.
	token = lazyregexp.New(`(?i)(\bbearer\s+)[^\s"',}]+`)
)

// Diff returns the change as a unified diff with three lines of context, for a terminal or a log.
// It hides tokens, and the texts of the old file: those of other servers may be secrets.
func (c *Change) Diff() string {
	if bytes.Equal(c.old, c.new) {
		return ""
	}
	before := c.Path
	if !c.exists {
		before = os.DevNull
	}
	const names = 2 // the first lines name the files
	lines := strings.SplitAfterN(udiff.Unified(before, c.Path, string(c.old), string(c.new)), "\n", names+1)
	shown := quoted().ReplaceAllStringFunc(lines[names], func(text string) string {
		if strings.HasSuffix(text, ":") || !bytes.Contains(c.old, []byte(text)) {
			return text
		}
		return text[:1] + hidden + text[:1]
	})
	return lines[0] + lines[1] + token().ReplaceAllString(shown, "${1}"+hidden)
}
