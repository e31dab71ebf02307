package config

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/internal/lazyregexp"
)

// Warning is about a setting that is unsafe or has no effect. The configuration is valid
// nevertheless.
type Warning struct {
	// Place is where the setting is, e.g. "config.hcl:12".
	Place string
	// Word silences the warning in a comment: # accept: WORD.
	Word string
	// Text says what is wrong and what to write.
	Text string
}

// The words of warnings that need the tools of the plugins. See [Config.Unaccepted].
const (
	WarnTier        = "tier"
	WarnUnavailable = "unavailable"
	WarnTaken       = "taken"
	WarnRefused     = "refused"
	WarnForbidden   = "forbidden"
)

// The words of the other warnings.
const (
	warnAllow       = "allow"
	warnDeny        = "deny"
	warnAssign      = "assign"
	warnRisk        = "risk"
	warnRedirect    = "redirect"
	warnPattern     = "pattern"
	warnUser        = "user"
	warnSystem      = "system"
	warnProgram     = "program"
	warnSocket      = "socket"
	warnProtect     = "protect"
	warnIsolation   = "isolation"
	warnEnvironment = "env"
	warnSecret      = "secret"
	warnShared      = "shared"
	warnWorkspace   = "workspace"
	warnExpired     = "expired"
	warnUnused      = "unused"
	warnMissing     = "missing"
	warnJournal     = "journal"
	warnListen      = "listen"
	warnCertificate = "certificate"
	warnKey         = "key"
)

// acceptWords returns the words of all warnings.
func acceptWords() []string {
	return append(withTools(), warnAllow, warnDeny, warnAssign, warnRisk, warnRedirect, warnPattern, warnUser, warnSystem, warnProgram,
		warnSocket, warnProtect, warnIsolation, warnEnvironment, warnSecret, warnShared, warnWorkspace, warnExpired, warnUnused, warnMissing, warnJournal,
		warnListen, warnCertificate, warnKey)
}

// withTools returns the words of warnings that need the tools of the plugins.
func withTools() []string {
	return []string{WarnTier, WarnUnavailable, WarnTaken, WarnRefused, WarnForbidden}
}

// Accepted is a word in a comment that silences a warning about the line.
type Accepted struct {
	// Place is the line that the comment is about. At is the comment.
	Place, At string
	Word      string
}

// acceptComment matches a comment that silences warnings.
var acceptComment = lazyregexp.New(`^(?:#|//|/\*)\s*accept:([^*\n]*)`)

// accepts reads the comments of a file that silence warnings. A comment is about its line, or
// about the next line if it stands alone.
func accepts(text []byte, tokens hclsyntax.Tokens) []Accepted {
	var all []Accepted
	var waiting []int // those that stand alone
	for _, token := range tokens {
		line := diag.Place(token.Range)
		if token.Type != hclsyntax.TokenComment {
			if token.Type != hclsyntax.TokenNewline {
				for _, i := range waiting {
					all[i].Place = line
				}
				waiting = nil
			}
			continue
		}
		said := acceptComment().FindSubmatch(token.Bytes)
		if said == nil {
			continue
		}
		alone := standsAlone(text, token.Range)
		for word := range strings.SplitSeq(string(said[1]), ",") {
			if alone {
				waiting = append(waiting, len(all))
			}
			all = append(all, Accepted{Place: line, At: line, Word: strings.TrimSpace(word)})
		}
	}
	return all
}

// standsAlone reports whether nothing comes before a token in its line.
func standsAlone(text []byte, at hcl.Range) bool {
	start := bytes.LastIndexByte(text[:at.Start.Byte], '\n') + 1
	return len(bytes.TrimSpace(text[start:at.Start.Byte])) == 0
}

// Unaccepted returns the warnings of the configuration and further ones, without those that a
// comment silences, as texts with their places. It adds comments that silence nothing. known
// reports that further holds all warnings about the tools of the plugins.
func (c *Config) Unaccepted(further []Warning, known bool) []string {
	var texts []string
	silences := make([]bool, len(c.Accepted))
	for _, w := range slices.Concat(c.Warnings, further) {
		accepted := false
		for i, a := range c.Accepted {
			if a.Word == w.Word && a.Place == w.Place {
				accepted, silences[i] = true, true
			}
		}
		if !accepted {
			texts = append(texts, fmt.Sprintf("%s: %s If you mean it, add the comment # accept: %s.", w.Place, w.Text, w.Word))
		}
	}
	for i, a := range c.Accepted {
		switch {
		case silences[i]:
		case !slices.Contains(acceptWords(), a.Word):
			texts = append(texts, fmt.Sprintf("%s: accept: no warning has the word %q.%s", a.At, a.Word, diag.NearestOrAll(a.Word, slices.Sorted(slices.Values(acceptWords())))))
		case known || !slices.Contains(withTools(), a.Word):
			texts = append(texts, fmt.Sprintf("%s: accept: there is no warning %q about this line. Remove the word.", a.At, a.Word))
		}
	}
	return texts
}

// warning is a [Warning] with its place in the file.
type warning struct {
	at hcl.Range
	Warning
}

// warn records a warning once: several plugins may have the same sandbox.
func (d *decoder) warn(at hcl.Range, accept, format string, args ...any) {
	w := warning{at, Warning{Place: diag.Place(at), Word: accept, Text: d.secrets.in(fmt.Sprintf(format, args...))}}
	if !slices.Contains(d.warnings, w) {
		d.warnings = append(d.warnings, w)
	}
}

// warned returns all warnings, in the order of the files.
func (d *decoder) warned() []Warning {
	slices.SortStableFunc(d.warnings, func(a, b warning) int {
		return cmp.Or(strings.Compare(a.at.Filename, b.at.Filename), a.at.Start.Byte-b.at.Start.Byte)
	})
	var all []Warning
	for _, w := range d.warnings {
		all = append(all, w.Warning)
	}
	return all
}
