// Package diag builds the diagnostics of a configuration: the place, the mistake, and what was
// expected. It never quotes a value that is not literal in the file, since the value may be
// secret.
package diag

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
)

// Mistake returns an error diagnostic for a place. The summary names the kind
// of mistake in a few words; the format and its arguments give the detail.
func Mistake(at hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  summary,
		Detail:   fmt.Sprintf(format, args...),
		Subject:  &at,
	}
}

// Place returns the file and the first line of a range, e.g. "config.hcl:12".
func Place(r hcl.Range) string { return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line) }

// DidYouMean returns a sentence that suggests the name nearest to given, to
// follow another sentence, or "" if no name is near.
func DidYouMean(given string, names []string) string {
	near := schema.Nearest(given, names)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", near[0])
}

// NearestOrAll is [DidYouMean], or a sentence that lists all names if none is
// near.
func NearestOrAll(given string, names []string) string {
	return cmp.Or(DidYouMean(given, names), " There are "+strings.Join(names, ", ")+".")
}

// Words joins words as alternatives: "a", "b" or "c".
func Words(words []string) string {
	quoted := Quoted(words)
	last := len(quoted) - 1
	if last < 1 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// Quoted returns each word in quotes.
func Quoted(words []string) []string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	return quoted
}

// IsLiteral reports whether an expression is a string written out in the file.
func IsLiteral(expr hcl.Expression) bool {
	template, ok := expr.(*hclsyntax.TemplateExpr)
	return ok && template.IsStringLiteral()
}

// Literal returns a string that is written out in the file.
func Literal(expr hcl.Expression) (string, bool) {
	if !IsLiteral(expr) {
		return "", false
	}
	value, diags := expr.Value(nil)
	if diags.HasErrors() || value.Type() != cty.String {
		return "", false
	}
	return value.AsString(), true
}
