package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// maxPattern limits the bytes of a [Pattern] in text form.
const maxPattern = 4096

// Pattern matches a command by all of its words, or by its first words.
type Pattern struct {
	// Words are the program and its first arguments, as the program gets them.
	Words []string
	// Open reports that further plain words may follow; see [Segment.Least].
	Open bool
}

// ParsePattern reads a command as a shell would; " *" at its end makes it open. It is
// one plain command: "git push *" is, "git push | cat" and "FOO=1 git push" are not.
func ParsePattern(text string) (Pattern, error) {
	if len(text) > maxPattern {
		return Pattern{}, fmt.Errorf("it is longer than %d bytes", maxPattern)
	}
	written, open := strings.CutSuffix(strings.TrimSpace(text), " *")
	line := Parse(written, Options{})
	switch {
	case len(line.Segments) == 0:
		return Pattern{}, errors.New("it holds no command")
	case len(line.Problems) > 0:
		return Pattern{}, errors.New(line.Problems[0].Why)
	}
	s := &line.Segments[0]
	switch {
	case !s.Literal && s.Name == "":
		return Pattern{}, errors.New("which program it runs is known only when it runs")
	case !s.Literal:
		return Pattern{}, errors.New("its words must be known: quote what the shell would replace, such as '*' and '$x', but not the program's name")
	case s.altered || s.fed:
		return Pattern{}, errors.New("it must be words only, without variables and redirections")
	case len(line.Segments) > 1 && !s.runs:
		return Pattern{}, errors.New("it holds more than one command")
	}
	return Pattern{Words: s.Words, Open: open}, nil
}

// String is the pattern as [ParsePattern] reads it.
func (p Pattern) String() string {
	quoted := make([]string, 0, len(p.Words)+1)
	for i, word := range p.Words {
		if i > 0 && !bare().MatchString(word) { // a program's name is written without quotes
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		quoted = append(quoted, word)
	}
	if p.Open {
		quoted = append(quoted, "*")
	}
	return strings.Join(quoted, " ")
}

// bare are the words that need no quotes.
var bare = lazyregexp.New(`^[A-Za-z0-9_./+:%@,=-]+$`)

// MarshalText implements [encoding.TextMarshaler].
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Pattern) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePattern(string(text))
	return err
}

// Covers reports whether a command matches the pattern. words and least are fields of its
// [Segment].
func (p Pattern) Covers(words []string, least int) bool {
	n := len(p.Words)
	if least == 0 || n < 1 || n > len(words) || !slices.Equal(p.Words, words[:n]) {
		return false
	}
	return n == len(words) && !p.Open || p.Open && n >= least
}

// least finds [Segment.Least].
func (r *reader) least(s *Segment) int {
	n := len(s.Words)
	switch {
	case s.Maybe || !s.Literal || s.altered || s.fed || n == 0 || reserved[s.Words[0]] || !writable().MatchString(s.Words[0]):
		return 0
	case !s.Clean && !slices.Equal(s.Words, s.Argv): // what speaks against it is left out there
		return 0
	case !s.Clean || s.runs || interpreters[s.Name] || strings.HasPrefix(s.Name, "python"):
		return n + 1
	case s.Known && !subcommands[s.Name]:
		return 1
	}
	least := 1
	if subcommands[s.Name] {
		least = 2
	}
	if n < least {
		return n + 1
	}
	if s.Known {
		return least
	}
	for n > least && r.follows(s.Words[n-1]) {
		n--
	}
	// What a message says is nothing to git.
	if s.Name == "git" && n > 2 && (s.Words[n-2] == "-m" || s.Words[n-2] == "--message") && !strings.HasPrefix(s.Words[n-1], "-") {
		n--
	}
	return n
}

// writable matches names that a shell reads as a program in any place.
var writable = lazyregexp.New(`^[A-Za-z0-9_./+\[\]:%@,-]+$`)

// reserved are words that are keywords at the beginning of a command.
//
//nolint:gochecknoglobals // a table
var reserved = set("if then else elif fi do done case esac while until for in function time select coproc [[ ]] let declare typeset local export readonly nameref")

// follows reports whether a word may follow the words of a pattern: it is not an option, not an
// assignment, has no colon, as addresses and git refs do, and is not a path out of the workspace.
func (r *reader) follows(word string) bool {
	if word == "" || strings.ContainsAny(word, ":=") || strings.ContainsAny(word[:1], "-+@!^%") {
		return false
	}
	_, why := r.outside(word)
	return why == ""
}

// plainWord matches words that bash reads unchanged, also in the place of a program: it sets no
// variable.
var plainWord = lazyregexp.New(`^[A-Za-z0-9_./@%+:,-]+$`)

// Join returns a line that bash would read as the words: a program and its arguments, which no
// shell has read.
func Join(words []string) string {
	joined := make([]string, len(words))
	for i, word := range words {
		if plainWord().MatchString(word) || i > 0 && plainWord().MatchString(strings.ReplaceAll(word, "=", "")) {
			joined[i] = word
			continue
		}
		joined[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(joined, " ")
}
