package schema

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxListed limits the mistakes and the names that one message lists.
const maxListed = 20

// explain describes every mistake so that a model can correct it.
func (s *Schema) explain(args any, invalid error) *tool.Error {
	var lines []string
	for _, m := range s.mistakes(invalid) {
		lines = append(lines, s.describe(args, m)...)
	}
	if len(lines) == 0 {
		lines = []string{"arguments do not fit the tool's schema"}
	}
	if more := len(lines) - maxListed; more > 0 {
		lines = append(lines[:maxListed], fmt.Sprintf("and %d more mistakes", more))
	}
	return tool.Errorf(tool.InvalidArgument, "%s", strings.Join(lines, "; ")).WithHint("%s", s.usage())
}

// usage lists the tool's arguments.
func (s *Schema) usage() string {
	properties := s.properties(s.doc)
	if len(properties) == 0 {
		return "the tool takes no arguments"
	}
	required, _ := s.doc["required"].([]any)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		about := typesOf(properties[name])
		if slices.Contains(required, any(name)) {
			about += ", required"
		}
		list = append(list, fmt.Sprintf("%s (%s)", name, about))
	}
	return "the tool takes " + joinSome(list)
}

func typesOf(schema map[string]any) string {
	switch t := schema["type"].(type) {
	case string:
		return t
	case []any:
		var names []string
		for _, name := range t {
			names = append(names, fmt.Sprint(name))
		}
		return strings.Join(names, " or ")
	}
	return "see schema"
}

// describe returns one sentence for a mistake, or one for each property.
func (s *Schema) describe(args any, m mistake) []string {
	where := place(args, m.path)
	value, _ := valueAt(args, m.path)
	got := "got " + shown(value, m)
	switch k := m.kind.(type) {
	case *kind.Required:
		return eachName(m.names, func(name string) string {
			return fmt.Sprintf("missing required field '%s' in %s", name, where)
		})
	case *kind.AdditionalProperties:
		return eachName(m.names, func(name string) string { return s.unknown(args, m, name) })
	case *kind.Type:
		if text := shown(value, m); text != typeName(value) {
			got = "got " + typeName(value) + " " + text
		}
		return []string{fmt.Sprintf("%s: expected %s, %s", where, strings.Join(m.either, " or "), got)}
	case *kind.Enum:
		return []string{fmt.Sprintf("%s: expected %s, %s%s", where, oneOf(k.Want), got, didYouMeanValue(value, k.Want))}
	case *kind.Const:
		return []string{fmt.Sprintf("%s: expected %s, %s", where, quote(k.Want), got)}
	case *kind.Minimum:
		return []string{fmt.Sprintf("%s: expected %s, %s", where, m.bounds("minimum", "maximum", "at least "+decimal(k.Want)), got)}
	case *kind.Maximum:
		return []string{fmt.Sprintf("%s: expected %s, %s", where, m.bounds("minimum", "maximum", "at most "+decimal(k.Want)), got)}
	case *kind.ExclusiveMinimum:
		return []string{fmt.Sprintf("%s: expected more than %s, %s", where, decimal(k.Want), got)}
	case *kind.ExclusiveMaximum:
		return []string{fmt.Sprintf("%s: expected less than %s, %s", where, decimal(k.Want), got)}
	case *kind.MultipleOf:
		return []string{fmt.Sprintf("%s: expected a multiple of %s, %s", where, decimal(k.Want), got)}
	case *kind.MinLength:
		return []string{fmt.Sprintf("%s: expected %s characters, got %d", where, m.bounds("minLength", "maxLength", fmt.Sprint("at least ", k.Want)), k.Got)}
	case *kind.MaxLength:
		return []string{fmt.Sprintf("%s: expected %s characters, got %d", where, m.bounds("minLength", "maxLength", fmt.Sprint("at most ", k.Want)), k.Got)}
	case *kind.MinItems:
		return []string{fmt.Sprintf("%s: expected %s items, got %d", where, m.bounds("minItems", "maxItems", fmt.Sprint("at least ", k.Want)), k.Got)}
	case *kind.MaxItems:
		return []string{fmt.Sprintf("%s: expected %s items, got %d", where, m.bounds("minItems", "maxItems", fmt.Sprint("at most ", k.Want)), k.Got)}
	case *kind.Pattern:
		return []string{fmt.Sprintf("%s: expected text that matches %s, %s", where, k.Want, got)}
	case *kind.FalseSchema:
		return []string{fmt.Sprintf("%s: not allowed here", where)}
	case *kind.AnyOf, *kind.OneOf:
		return []string{fmt.Sprintf("%s: expected exactly what one of the forms in the schema says, %s", where, got)}
	}
	return []string{fmt.Sprintf("%s: %s", where, m.kind.LocalizedString(english()))}
}

// bounds returns both limits of a schema, as in "1 to 100", so that one retry is enough. With only
// one limit it returns otherwise.
func (m mistake) bounds(least, most, otherwise string) string {
	low, high := m.schema[least], m.schema[most]
	if low == nil || high == nil || low == leastInteger || high == greatestInteger {
		return otherwise
	}
	return fmt.Sprintf("%v to %v", low, high)
}

// shown returns a value for a message: simple values only, and no secrets, which the arguments as a
// whole may contain.
func shown(value any, m mistake) string {
	switch value.(type) {
	case map[string]any, []any:
		return typeName(value)
	}
	if len(m.path) == 0 || m.schema[tool.KeywordRole] == string(tool.RoleSecret) {
		return typeName(value)
	}
	return quote(value)
}

// unknown reports an unknown property, and similar names.
func (s *Schema) unknown(args any, m mistake, name string) string {
	declared := s.properties(m.schema)
	text := fmt.Sprintf("unknown field '%s' in %s", tool.Visible(Shorten(name)), place(args, m.path))
	for _, property := range slices.Sorted(maps.Keys(declared)) {
		aliases, _ := declared[property][tool.KeywordAliases].([]any)
		if slices.Contains(aliases, any(name)) {
			return fmt.Sprintf("%s, it is another name of '%s', which is given too", text, property)
		}
	}
	names := slices.Sorted(maps.Keys(declared))
	switch near := Nearest(name, names); {
	case len(near) > 0:
		return fmt.Sprintf("%s, did you mean '%s'?", text, near[0])
	case len(names) == 0:
		return text + ", expected none"
	}
	return text + ", expected " + joinSome(names)
}

func eachName(names []string, sentence func(name string) string) []string {
	var list []string
	for _, name := range names {
		list = append(list, sentence(name))
	}
	return list
}

func oneOf(values []any) string {
	var list []string
	for _, value := range values {
		list = append(list, quote(value))
	}
	return "one of " + joinSome(list)
}

func didYouMeanValue(got any, want []any) string {
	text, ok := got.(string)
	if !ok {
		return ""
	}
	var names []string
	for _, value := range want {
		if name, ok := value.(string); ok {
			names = append(names, name)
		}
	}
	near := Nearest(text, names)
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf(", did you mean %s?", quote(near[0]))
}

func joinSome(list []string) string {
	if more := len(list) - maxListed; more > 0 {
		return strings.Join(list[:maxListed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(list, ", ")
}

// Shorten cuts an untrusted name to a readable length.
func Shorten(name string) string { return excerpt.Of(name, longestName) }

// decimal formats a limit of a schema.
func decimal(n *big.Rat) string {
	if n.IsInt() {
		return n.Num().String()
	}
	f, _ := n.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

var identifier = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// place returns where a value is, as in "arguments.items[0].path".
func place(root any, path []string) string {
	var b strings.Builder
	b.WriteString("arguments")
	value := root
	for _, name := range path {
		_, inArray := value.([]any)
		switch {
		case inArray:
			fmt.Fprintf(&b, "[%s]", name)
		case identifier().MatchString(name):
			b.WriteString("." + name)
		default:
			fmt.Fprintf(&b, "[%s]", quote(name))
		}
		value, _ = valueAt(value, []string{name})
	}
	return b.String()
}

// english formats the library's messages.
func english() *message.Printer { return message.NewPrinter(language.English) }

// swapped reports whether two adjacent bytes of a are exchanged in b.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// longestName is the longest name that is compared with others. A longer one is not a typing
// mistake.
const longestName = 64

// Nearest returns up to three candidates that are similar to name, nearest first.
func Nearest(name string, candidates []string) []string {
	if len(name) > longestName {
		return nil
	}
	type near struct {
		candidate string
		distance  int
	}
	var found []near
	for _, candidate := range candidates {
		if len(candidate) > longestName {
			continue
		}
		a, b := strings.ToLower(name), strings.ToLower(candidate)
		distance := levenshtein.Distance(a, b, nil)
		if swapped(a, b) {
			distance = 1
		}
		switch {
		case distance <= min(utf8.RuneCountInString(a), utf8.RuneCountInString(b))/3+1 && distance < utf8.RuneCountInString(b):
		case len(a) >= 3 && strings.Contains(b, a), len(b) >= 3 && strings.Contains(a, b):
		default:
			continue
		}
		found = append(found, near{candidate, distance})
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.candidate, b.candidate))
	})
	var names []string
	for _, n := range found[:min(3, len(found))] {
		names = append(names, n.candidate)
	}
	return names
}
