package policy

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/decide/command"
)

// Commands are the administrator's lists that judge shell commands.
type Commands struct {
	// Allow covers commands that may run without asking, as far as their risk allows.
	Allow []CommandRule `json:"allow,omitempty"`
	// Deny covers commands that never run.
	Deny []CommandRule `json:"deny,omitempty"`
	// Unlisted is the level of all other commands: [Ask], which 0 means, or [Deny].
	Unlisted Verdict `json:"unlisted,omitempty"`
	// Risk holds levels by risk; the defaults are allow, ask and confirm.
	Risk map[command.Risk]Verdict `json:"risk,omitempty"`
	// AllowStanding lets grants answer a [Confirm] that a risk requires.
	AllowStanding bool `json:"allow_standing,omitempty"`
	// BlockHighRisk denies commands of high risk.
	BlockHighRisk bool `json:"block_high_risk,omitempty"`
	// Text is the level of commands that a shell would read as text and that no person has
	// approved: [Ask], which 0 means, or [Allow].
	Text Verdict `json:"text,omitempty"`
	// Assign and WriteRedirects are fields of [command.Options].
	Assign         []string `json:"assign,omitempty"`
	WriteRedirects []string `json:"write_redirects,omitempty"`
	// Place is where the lists are configured; "" for the defaults.
	Place string `json:"-"`
}

// CommandRule covers commands by their first words.
type CommandRule struct {
	// Words are the first words of a command: its program and, if given, its first arguments. A
	// last word "*" stands for any further words.
	Words []string `json:"words"`
	// Place is where the rule is configured.
	Place string `json:"-"`
}

// String returns the words as they are configured.
func (c CommandRule) String() string { return strings.Join(c.Words, " ") }

// prefix returns the words without a last "*", and whether there is one.
func (c CommandRule) prefix() (words []string, open bool) {
	last := len(c.Words) - 1
	if last > 0 && c.Words[last] == "*" {
		return c.Words[:last], true
	}
	return c.Words, false
}

// allows reports whether the rule covers a command. It covers all harmless uses of a known program.
// For other programs the words must be equal, unless the rule ends with "*".
func (c CommandRule) allows(s *command.Segment) bool {
	prefix, open := c.prefix()
	if len(prefix) == 0 || len(s.Words) < len(prefix) || !slices.Equal(prefix, s.Words[:len(prefix)]) {
		return false
	}
	return s.Known || s.Literal && (open || len(s.Words) == len(prefix))
}

// denies reports whether the rule covers a command. The program may be named by a path, or have a
// suffix after a dot, as in mkfs.ext4.
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
	if s.Loose { // its own command may be any word
		for i := 1; i+len(prefix)-1 <= len(s.Words); i++ {
			if slices.Equal(prefix[1:], s.Words[i:i+len(prefix)-1]) {
				return true
			}
		}
		return false
	}
	return slices.Equal(prefix[1:], s.Words[1:len(prefix)])
}

// deniesUnparsed reports whether one of the words may be the program of a prefix, with the rest of
// the prefix after it in the same command.
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

// isProgram reports whether a word names a program. name is the last element of the word as a path.
func isProgram(program, word, name string) bool {
	return name == program || word == program || strings.HasPrefix(name, program+".")
}

// level returns the verdict for an allowed command of a risk.
func (c *Commands) level(risk command.Risk) Verdict {
	return cmp.Or(c.Risk[risk], [...]Verdict{command.Low: Allow, command.Medium: Ask, command.High: Confirm}[risk])
}

// Confirms reports whether there is a risk whose level is [Confirm].
func (c *Commands) Confirms() bool {
	return c.level(command.Low) == Confirm || c.level(command.Medium) == Confirm || c.level(command.High) == Confirm
}

// judge returns the decision of the lists about a command, and false if they have none. Without
// lists it denies only commands that must never run. Nothing in a script is allowed: its effect
// depends on earlier input.
func (c *Commands) judge(cmd Command, builds Level) (Decision, bool) {
	if line := cmd.Line; line.Forbidden != "" {
		return Decision{Verdict: Deny, Rule: "what no command may do", Reason: violation(line.Forbidden)}, true
	}
	if c == nil {
		return Decision{}, false
	}
	d := c.line(cmd.Line, builds)
	return d, d.Verdict == Deny || !cmd.Script
}

// line judges a line. The strictest verdict on its commands counts.
func (c *Commands) line(line *command.Line, builds Level) Decision {
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
		tells := other.Rule != "" && (!named || other.Rule == ruleBuilds) // of what is allowed, a build may do the most
		if other.Verdict > d.Verdict || tells && other.Verdict == d.Verdict {
			d, named = other, true
		}
	}
	for i := range line.Segments {
		stricter(c.segment(&line.Segments[i], builds))
	}
	for _, p := range line.Problems {
		stricter(Decision{Verdict: max(Ask, c.level(p.Risk)), Rule: "a command that is not known as a whole: " + p.Why, Where: c.Place})
	}
	return d
}

// ruleBuilds is the rule for commands that build.
const ruleBuilds = "approval.builds"

// segment decides about one command. builds is the level of commands that build.
func (c *Commands) segment(s *command.Segment, builds Level) Decision {
	if harmless(s) {
		return Decision{Verdict: Allow}
	}
	if s.Builds && builds.Verdict == Allow {
		return Decision{Verdict: Allow, Rule: ruleBuilds, Where: builds.Place, By: ByConfig}
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
	var changes []string
	if s.Literal && s.Risk < command.High {
		changes = append(changes, fmt.Sprintf("add %q to allow in the commands block", strings.Join(s.Argv, " ")))
	}
	if s.Builds {
		changes = append(changes, `set builds = "allow" in the approval block of the plugin`)
	}
	change := strings.Join(changes, ", or ")
	if c.Unlisted == Deny {
		return Decision{Verdict: Deny, Rule: fmt.Sprintf("commands.unlisted %q", s.Name), Where: c.Place, Reason: violation("Command not in allowlist"), Change: change}
	}
	return Decision{Verdict: max(Ask, c.level(s.Risk)), Rule: fmt.Sprintf("commands.unlisted %q", s.Name), Where: c.Place, Change: change}
}

// harmless reports whether a command only runs others, which are judged separately, or may not be a
// command.
func harmless(s *command.Segment) bool {
	return s.Maybe || s.Transparent && s.Risk == command.Low
}

func violation(reason string) string { return "Security policy violation: " + reason }
