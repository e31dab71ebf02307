package policy

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// Commands are the administrator's lists by which shell commands are judged.
type Commands struct {
	// Allow covers commands that may run unasked, as far as their risk allows.
	Allow []CommandRule `json:"allow,omitempty"`
	// Deny covers commands that never run.
	Deny []CommandRule `json:"deny,omitempty"`
	// Unlisted is the level of all others: [Ask], which 0 means, or [Deny].
	Unlisted Verdict `json:"unlisted,omitempty"`
	// Risk holds levels by risk; the defaults are allow, ask and confirm.
	Risk map[command.Risk]Verdict `json:"risk,omitempty"`
	// AllowStanding lets grants answer what a risk asks for with [Confirm].
	AllowStanding bool `json:"allow_standing,omitempty"`
	// BlockHighRisk denies what is of high risk.
	BlockHighRisk bool `json:"block_high_risk,omitempty"`
	// Text is the level of commands that a shell would read as text and nobody has
	// approved: [Ask], which 0 means, or [Allow].
	Text Verdict `json:"text,omitempty"`
	// Assign and WriteRedirects are those of [command.Options].
	Assign         []string `json:"assign,omitempty"`
	WriteRedirects []string `json:"write_redirects,omitempty"`
	// Place is where the lists are configured, "" for the defaults.
	Place string `json:"-"`
}

// CommandRule covers commands that begin with words.
type CommandRule struct {
	// Words are what a command begins with: its program and, if they are given,
	// its first arguments. A last word "*" stands for any further ones.
	Words []string `json:"words"`
	// Place is where the rule is configured.
	Place string `json:"-"`
}

// String returns the words as they are configured.
func (c CommandRule) String() string { return strings.Join(c.Words, " ") }

// prefix returns the words without the last "*", and whether there is one.
func (c CommandRule) prefix() (words []string, open bool) {
	last := len(c.Words) - 1
	if last > 0 && c.Words[last] == "*" {
		return c.Words[:last], true
	}
	return c.Words, false
}

// allows reports whether the rule covers a command. Of a program that is known it
// covers all harmless uses; of any other one the very words, unless it ends with "*".
func (c CommandRule) allows(s *command.Segment) bool {
	prefix, open := c.prefix()
	if len(prefix) == 0 || len(s.Words) < len(prefix) || !slices.Equal(prefix, s.Words[:len(prefix)]) {
		return false
	}
	return s.Known || s.Literal && (open || len(s.Words) == len(prefix))
}

// denies reports whether the rule covers a command, however its program is named:
// by a path, or with a part after a dot, as mkfs.ext4.
func (c CommandRule) denies(s *command.Segment) bool {
	prefix, _ := c.prefix()
	if len(prefix) == 0 || len(s.Words) < len(prefix) || s.Name == "" {
		return false
	}
	if s.Unparsed {
		return deniesUnparsed(prefix, s.Words)
	}
	if !isProgram(prefix[0], s.Words[0], s.Name) {
		return false
	}
	if s.Loose { // its own command may stand anywhere
		for i := 1; i+len(prefix)-1 <= len(s.Words); i++ {
			if slices.Equal(prefix[1:], s.Words[i:i+len(prefix)-1]) {
				return true
			}
		}
		return false
	}
	return slices.Equal(prefix[1:], s.Words[1:len(prefix)])
}

// deniesUnparsed reports whether one of the words may be the program of a prefix, and the
// rest of the prefix stands behind it in the same command.
func deniesUnparsed(prefix, words []string) bool {
	rest, named := prefix[1:], false
	for i, word := range words {
		if word == command.Break {
			named = false
			continue
		}
		if named && len(rest) <= len(words)-i && slices.Equal(rest, words[i:i+len(rest)]) {
			return true
		}
		if isProgram(prefix[0], word, path.Base(word)) {
			if named = true; len(rest) == 0 {
				return true
			}
		}
	}
	return false
}

// isProgram reports whether a word, whose last part as a path is name, names a program.
func isProgram(program, word, name string) bool {
	return name == program || word == program || strings.HasPrefix(name, program+".")
}

// level is the verdict on what is allowed and of a risk.
func (c *Commands) level(risk command.Risk) Verdict {
	return cmp.Or(c.Risk[risk], [...]Verdict{command.Low: Allow, command.Medium: Ask, command.High: Confirm}[risk])
}

// Confirms reports whether there is a risk whose level is [Confirm].
func (c *Commands) Confirms() bool {
	return c.level(command.Low) == Confirm || c.level(command.Medium) == Confirm || c.level(command.High) == Confirm
}

// judge decides what the lists say of a command: who says it, and why. It reports
// false if they say nothing. Without lists it denies what nobody should run. Of a
// script nothing is allowed: what it does depends on what came before.
func (c *Commands) judge(cmd Command) (Decision, bool) {
	if line := cmd.Line; line.Forbidden != "" {
		return Decision{Verdict: Deny, Rule: "what no command may do", Reason: violation(line.Forbidden)}, true
	}
	if c == nil {
		return Decision{}, false
	}
	d := c.line(cmd.Line)
	return d, d.Verdict == Deny || !cmd.Script
}

// line judges a line. Of several commands the strictest verdict counts.
func (c *Commands) line(line *command.Line) Decision {
	for i := range line.Segments {
		s := &line.Segments[i]
		for _, rule := range c.Deny {
			if rule.denies(s) {
				return Decision{
					Verdict: Deny, Rule: fmt.Sprintf("commands.deny %q", rule), Where: rule.Place, Reason: violation(rule.String() + " is denied"),
					Change: fmt.Sprintf("remove %q from deny in the commands block", rule),
				}
			}
		}
	}
	if c.BlockHighRisk && line.Risk() == command.High {
		return Decision{
			Verdict: Deny, Rule: "commands.block_high_risk", Where: c.Place, Reason: violation("High-risk commands are blocked"),
			Change: "block_high_risk = false in the commands block",
		}
	}
	d := Decision{Verdict: Allow, Rule: "commands.allow", Where: c.Place, By: ByConfig}
	named := false // d names an entry
	stricter := func(other Decision) {
		if other.Verdict > d.Verdict || !named && other.Rule != "" && other.Verdict == d.Verdict {
			d, named = other, true
		}
	}
	for i := range line.Segments {
		stricter(c.segment(&line.Segments[i]))
	}
	for _, p := range line.Problems {
		stricter(Decision{Verdict: max(Ask, c.level(p.Risk)), Rule: "a command that is not known as a whole: " + p.Why, Where: c.Place})
	}
	return d
}

// segment decides about one command.
func (c *Commands) segment(s *command.Segment) Decision {
	if harmless(s) {
		return Decision{Verdict: Allow}
	}
	for _, rule := range c.Allow {
		if !rule.allows(s) {
			continue
		}
		if level := c.level(s.Risk); (s.Known || !s.Clean) && level != Allow {
			d := Decision{
				Verdict: level, Rule: fmt.Sprintf("commands.risk.%s: %s", s.Risk, s.Why), Where: c.Place,
				Change: fmt.Sprintf("risk { %s = %q } in the commands block", s.Risk, Allow),
			}
			if level == Deny {
				d.Reason = violation(fmt.Sprintf("Commands of %s risk are denied: %s", s.Risk, s.Why))
			}
			return d
		}
		return Decision{Verdict: Allow, Rule: fmt.Sprintf("commands.allow %q", rule), Where: rule.Place, By: ByConfig}
	}
	change := ""
	if s.Literal && s.Risk < command.High {
		change = fmt.Sprintf("add %q to allow in the commands block", strings.Join(s.Argv, " "))
	}
	if c.Unlisted == Deny {
		return Decision{Verdict: Deny, Rule: fmt.Sprintf("commands.unlisted %q", s.Name), Where: c.Place, Reason: violation("Command not in allowlist"), Change: change}
	}
	return Decision{Verdict: max(Ask, c.level(s.Risk)), Rule: fmt.Sprintf("commands.unlisted %q", s.Name), Where: c.Place, Change: change}
}

// harmless reports whether a command only runs others, which are judged themselves, or
// may be none at all.
func harmless(s *command.Segment) bool {
	return s.Maybe || s.Transparent && s.Risk == command.Low
}

func violation(reason string) string { return "Security policy violation: " + reason }
