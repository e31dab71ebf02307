package console

import (
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// card is a call as an approver reads it: the lines of [approval.Show], in sections.
type card struct {
	httpapi.Approval
	// Facts are what the host knows of the call; those of the head line are left out.
	Facts    []approval.Line
	Sections []section
	// Mine is set if the caller may decide now. Suffix ends the names of the fields of its forms.
	Mine   bool
	Suffix string
	CSRF   string
	// Scope is what the form for later calls has; nil if the answer can give no grant.
	Scope *scope
}

// section is a part of a card.
type section struct {
	Heading string
	// Kind is the kind of its lines: "warning" for those of the host.
	Kind  approval.LineKind
	Lines []line
}

// line is a line with the parts that a diff changes.
type line struct {
	Kind  approval.LineKind
	Parts []part
}

// newCard returns the card of a call.
func newCard(v *visit, a httpapi.Approval) *card {
	c := &card{Approval: a, CSRF: v.csrf, Mine: a.State == approval.Open && !a.MayNotDecide && v.caller.Roles.Has(auth.Approver)}
	if a.Display != nil {
		c.Facts, c.Sections = sections(a.Display.Lines)
	}
	return c
}

// sections divides the lines of a view at its headings.
func sections(lines []approval.Line) (facts []approval.Line, all []section) {
	for _, l := range lines {
		switch {
		case l.Kind == approval.Fact && (l.Label == "Tool" || l.Label == "Tier" || l.Label == "Plugin" || l.Label == "State"):
		case l.Kind == approval.Fact:
			facts = append(facts, l)
		case l.Kind == approval.Heading:
			all = append(all, section{Heading: l.Text})
		default:
			if len(all) == 0 || (l.Kind == approval.Warning) != (all[len(all)-1].Kind == approval.Warning) && len(all[len(all)-1].Lines) > 0 {
				all = append(all, section{})
			}
			last := &all[len(all)-1]
			if last.Kind == "" {
				last.Kind = l.Kind
			}
			last.Lines = append(last.Lines, line{Kind: l.Kind, Parts: []part{{Text: l.Text}}})
		}
	}
	for _, s := range all {
		markWords(s.Lines)
	}
	return facts, all
}

// markWords marks what differs between the lines that a diff removes and those that it adds instead.
func markWords(lines []line) {
	for i := 0; i < len(lines); {
		if lines[i].Kind != approval.Removed {
			i++
			continue
		}
		removed := run(lines[i:], approval.Removed)
		added := run(lines[i+removed:], approval.Added)
		for j := range min(removed, added) {
			before, after := &lines[i+j], &lines[i+removed+j]
			if strings.HasPrefix(before.Parts[0].Text, "--- ") && strings.HasPrefix(after.Parts[0].Text, "+++ ") {
				continue // the names of the files
			}
			before.Parts, after.Parts = words(before.Parts[0].Text, after.Parts[0].Text)
		}
		i += removed + added
	}
}

// run returns how many lines of a kind come first.
func run(lines []line, kind approval.LineKind) (n int) {
	for n < len(lines) && lines[n].Kind == kind {
		n++
	}
	return n
}
