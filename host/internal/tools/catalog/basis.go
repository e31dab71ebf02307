package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Basis is the program and the tools, as offered then, for which a lasting answer was given. The
// zero Basis belongs to no plugin.
type Basis struct {
	// Program is the digest of the program.
	Program string `json:"program"`
	// Tools are the tools that the answer covers, by name.
	Tools map[string]Terms `json:"tools"`
	// Pending are the digests of definitions that wait to be accepted, by the name of the tool. Answers
	// do not depend on them; only [Catalog.Bases] sets them.
	Pending map[string]string `json:"pending,omitempty"`
}

// Terms are the properties of a tool for which such an answer is given.
type Terms struct {
	// Schema is the digest of the input schema.
	Schema string `json:"schema"`
	// Tier describes the tier of calls, including those that depend on arguments.
	Tier string `json:"tier"`
	// Definition is the digest of the accepted definition; "" if the plugin is not locked.
	Definition string `json:"definition,omitempty"`
	// Description is the digest of the title and the description. Answers do not depend on it; it
	// is empty in their bases.
	Description string `json:"description,omitempty"`
}

// Basis returns the current basis of a plugin; the zero Basis if its tools are not known. The
// caller must not change it.
func (c *Catalog) Basis(plugin string) Basis {
	b := c.current.Load().bases[plugin]
	b.Pending = nil
	return b
}

// Bases returns the basis of each plugin with known tools. The caller must not change them.
func (c *Catalog) Bases() map[string]Basis { return c.current.Load().bases }

// Of returns the part of a basis for an answer about one tool, or about all tools if name is "".
func (b Basis) Of(name string) Basis {
	if b.IsZero() {
		return b
	}
	part := Basis{Program: b.Program, Tools: make(map[string]Terms)}
	for other, terms := range b.Tools {
		if name == "" || name == other {
			part.Tools[other] = Terms{Schema: terms.Schema, Tier: terms.Tier, Definition: terms.Definition}
		}
	}
	return part
}

// Holds reports whether an answer about one tool, or about all if name is "", that was given for b
// is still valid for now.
func (b Basis) Holds(now Basis, name string) bool {
	if b.Program != now.Program {
		return false
	}
	if name != "" {
		return b.Tools[name].same(now.Tools[name])
	}
	return maps.EqualFunc(b.Tools, now.Tools, Terms.same)
}

// same reports whether an answer that was given for a tool holds for another one. An answer from before
// the plugin was locked is about no definition.
func (t Terms) same(now Terms) bool {
	return t.Schema == now.Schema && t.Tier == now.Tier && (t.Definition == "" || t.Definition == now.Definition)
}

// IsZero reports whether the basis belongs to no plugin.
func (b Basis) IsZero() bool { return b.Program == "" && len(b.Tools) == 0 }

// Digest returns the digest of the basis.
func (b Basis) Digest() string {
	text, err := json.Marshal(b) // sorts the names
	if err != nil {
		return "" // texts and maps of texts can always be marshalled
	}
	return digest.Of(text)
}

// Changes describes how now differs from b, one change in a line. Descriptions are compared if b
// has them.
func (b Basis) Changes(now Basis) []string {
	var changes []string
	if b.Program != now.Program {
		changes = append(changes, "the program of the plugin has changed")
	}
	names := make(map[string]bool)
	for name := range b.Tools {
		names[name] = true
	}
	for name := range now.Tools {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, was := b.Tools[name]
		after, is := now.Tools[name]
		if now.Pending[name] != "" {
			continue // told below
		}
		for _, change := range termsChanges(before, after, was, is) {
			changes = append(changes, "tool "+name+": "+change)
		}
	}
	if len(now.Pending) > 0 && !maps.Equal(b.Pending, now.Pending) {
		changes = append(changes, display.Plural(len(now.Pending), "definition")+" to accept: "+display.Names(slices.Sorted(maps.Keys(now.Pending))))
	}
	return changes
}

func termsChanges(before, after Terms, was, is bool) (changes []string) {
	switch {
	case !was:
		return []string{"new"}
	case !is:
		return []string{"gone"}
	}
	if before.Tier != after.Tier {
		changes = append(changes, "tier "+before.Tier+" -> "+after.Tier)
	}
	if before.Schema != after.Schema {
		changes = append(changes, "schema changed")
	}
	if before.Description != "" && before.Description != after.Description {
		changes = append(changes, "description changed")
	}
	if before.Definition != "" && before.Definition != after.Definition && len(changes) == 0 {
		changes = append(changes, "accepted definition changed")
	}
	return changes
}

// basis returns the basis of the publication.
func (p *publication) basis() Basis {
	b := Basis{Program: p.digest, Tools: make(map[string]Terms, len(p.entries)), Pending: p.pending}
	for _, e := range p.entries {
		text := e.Spec.Title + "\n" + e.Spec.Description
		if e.Spec.SearchHint != "" {
			text += "\x00" + e.Spec.SearchHint // neither has a NUL
		}
		b.Tools[e.Spec.Name] = Terms{
			Schema: e.Schema.Digest(), Tier: e.tierText(), Definition: e.Definition, Description: digest.Of(text),
		}
	}
	return b
}

// maxTierText limits the description of a tool's tiers, in bytes.
const maxTierText = 512

// tierText describes the tiers of the tool's calls. Texts are equal if all calls have the same
// tiers.
func (e *Entry) tierText() string {
	text := e.Tier.String()
	for _, rule := range e.tiers.rules {
		tier, value := max(rule.tier, e.tiers.floor), "given"
		if !rule.present {
			value = string(schema.Canonical(rule.equals))
		}
		what := tier.String()
		if tooHigh(tier, e.ceiling) != "" {
			what = "not allowed"
		}
		text += fmt.Sprintf(", %s if %q is %s", what, rule.property, value)
	}
	if text = tool.Visible(text); len(text) > maxTierText {
		return e.Tier.String() + ", others by rules with " + digest.Of(text)
	}
	return text
}
