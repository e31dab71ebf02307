package lock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Text returns the definition for a person, in lines: each property, and the schemas as indented JSON.
// Invisible characters are escaped, and no text of the tool can imitate a property.
func (d Definition) Text() string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(d.canonical), &members) != nil {
		return "" // the zero Definition
	}
	first := []string{"name", "title", "description"}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(members)), func(name string) bool { return slices.Contains(first, name) })
	var b strings.Builder
	for _, name := range slices.Concat(first, names) {
		value, ok := members[name]
		if !ok {
			continue
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			var indented bytes.Buffer
			if json.Indent(&indented, value, "", "  ") != nil {
				return ""
			}
			text = indented.String()
		}
		if text = tool.Visible(text); !strings.Contains(text, "\n") {
			fmt.Fprintf(&b, "%s: %s\n", name, text)
			continue
		}
		fmt.Fprintf(&b, "%s:\n", name)
		for line := range strings.Lines(text) {
			fmt.Fprintf(&b, "    %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	return b.String()
}

// diffContext is how many unchanged lines a diff shows around a change.
const diffContext = 2

// Diff returns the lines in which two definitions differ, with "-" before those of the first and "+"
// before those of the second. Below a line with characters that may look like others, it shows them
// as escapes.
func Diff(accepted, published Definition) string {
	before, after := accepted.Text(), published.Text()
	diff, err := udiff.ToUnifiedDiff("accepted", "published", before, udiff.Lines(before, after), diffContext)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for i, hunk := range diff.Hunks {
		if i > 0 {
			b.WriteString("  ...\n")
		}
		for _, line := range hunk.Lines {
			text := strings.TrimSuffix(line.Content, "\n")
			mark := map[udiff.OpKind]string{udiff.Delete: "-", udiff.Insert: "+"}[line.Kind]
			if mark == "" {
				fmt.Fprintf(&b, "  %s\n", text)
				continue
			}
			fmt.Fprintf(&b, "%s %s\n", mark, text)
			if ascii := strconv.QuoteToASCII(text); ascii != strconv.Quote(text) {
				fmt.Fprintf(&b, "%s     with escapes: %s\n", mark, ascii)
			}
		}
	}
	return b.String()
}

// Decode reads the canonical JSON of a definition, as [Definition.JSON] returns it.
func Decode(text json.RawMessage) (Definition, error) {
	var spec tool.Spec
	if err := json.Unmarshal(text, &spec); err != nil {
		return Definition{}, fmt.Errorf("read a definition: %w", err)
	}
	return Define(spec)
}
