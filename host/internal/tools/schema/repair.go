package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Repair is one change that made arguments fit. It never holds the value, which may be a secret.
type Repair struct {
	// Place is where, for example "arguments.limit".
	Place string `json:"place"`
	// Change is the change, for example "string to integer".
	Change string `json:"change"`
}

// Limits of repairs: one repair may reveal the next. More mistakes than these are not
// typing errors.
const (
	maxRepairRounds = 4
	maxRepairs      = 100
)

// repair fixes mistakes without losing anything. It returns the repaired value and the error of the
// last validation.
func (s *Schema) repair(args any, invalid error) (any, []Repair, error) {
	r := repairer{schema: s, root: args}
	for range maxRepairRounds {
		mistakes := s.mistakes(invalid)
		if len(mistakes) > maxRepairs {
			break
		}
		before := len(r.done)
		for _, m := range mistakes {
			r.mend(m)
		}
		if len(r.done) == before {
			break
		}
		if invalid = s.rules().validator.Validate(r.root); invalid == nil {
			return r.root, r.done, nil
		}
	}
	return r.root, nil, invalid
}

type repairer struct {
	schema *Schema
	root   any
	done   []Repair
}

func (r *repairer) mend(m mistake) {
	switch k := m.kind.(type) {
	case *kind.Type:
		value, ok := valueAt(r.root, m.path)
		if !ok {
			return
		}
		if value == nil && r.drop(m.path) {
			return
		}
		if mended, change := r.convert(value, m); change != "" {
			r.replace(m.path, mended)
			r.done = append(r.done, Repair{Place: place(r.root, m.path), Change: change})
		}
	case *kind.AdditionalProperties:
		r.rename(m)
	case *kind.Enum:
		r.respell(m, k.Want)
	}
}

// respell gives a text that is an enum value in other case the spelling of the enum,
// such as "GET" for "get", unless two values differ only in case.
func (r *repairer) respell(m mistake, values []any) {
	value, _ := valueAt(r.root, m.path)
	text, isString := value.(string)
	var meant []string
	for _, v := range values {
		if known, ok := v.(string); ok && isString && strings.EqualFold(known, text) {
			meant = append(meant, known)
		}
	}
	if len(meant) == 1 {
		r.replace(m.path, meant[0])
		r.done = append(r.done, Repair{Place: place(r.root, m.path), Change: "case of an enum value"})
	}
}

// drop removes a property that is null, which models write for an omitted one. A required property
// is then reported as missing.
func (r *repairer) drop(path []string) bool {
	if len(path) == 0 {
		return false
	}
	parent, _ := valueAt(r.root, path[:len(path)-1])
	holder, ok := parent.(map[string]any)
	if !ok {
		return false
	}
	r.done = append(r.done, Repair{Place: place(r.root, path), Change: "null to left out"})
	delete(holder, path[len(path)-1])
	return true
}

// rename gives properties with an alias their real name, unless that is present too.
func (r *repairer) rename(m mistake) {
	value, _ := valueAt(r.root, m.path)
	holder := object(value)
	declared := r.schema.properties(m.schema)
	for _, alias := range m.names {
		for _, name := range slices.Sorted(maps.Keys(declared)) {
			list, _ := declared[name][tool.KeywordAliases].([]any)
			_, given := holder[alias] // no longer, if another repair came before
			_, taken := holder[name]
			if !given || taken || !slices.Contains(list, any(alias)) {
				continue
			}
			holder[name] = holder[alias]
			delete(holder, alias)
			r.done = append(r.done, Repair{
				Place:  place(r.root, append(slices.Clone(m.path), name)),
				Change: fmt.Sprintf("given as %s", quote(alias)),
			})
			break
		}
	}
}

// convert returns value as one of the accepted types, and what that changes; "" if it would lose or
// guess something.
func (r *repairer) convert(value any, m mistake) (mended any, change string) {
	text, isString := value.(string)
	for _, want := range []string{"integer", "number", "boolean", "object", "array"} {
		if isString && slices.Contains(m.either, want) {
			if read, ok := readAs(text, want, len(m.path)); ok {
				return read, "string to " + want
			}
		}
	}
	if n, ok := value.(json.Number); ok && slices.Contains(m.either, "string") && isInteger(n) {
		return n.String(), "integer to string"
	}
	if isString && len(m.path) == 0 && r.schema.rawName != "" {
		return map[string]any{r.schema.rawName: text}, "string to property " + r.schema.rawName
	}
	if slices.Contains(m.either, "string") && r.isProperty(m.path) && m.schema[tool.KeywordRole] == string(tool.RoleCommand) {
		if line, ok := commandLine(value); ok {
			return line, "words to a command line"
		}
	}
	if slices.Contains(m.either, "array") && r.isItem(value, m.schema) {
		return []any{value}, "one value to an array of it"
	}
	return nil, ""
}

// isProperty reports whether a path leads to a property of an object, and not to an item of a list.
func (r *repairer) isProperty(path []string) bool {
	if len(path) == 0 {
		return false
	}
	holder, _ := valueAt(r.root, path[:len(path)-1])
	return object(holder) != nil
}

// isInteger reports whether a number is written as an integer.
func isInteger(n json.Number) bool {
	_, err := strconv.ParseInt(n.String(), 10, 64)
	return err == nil
}

// readAs reads a text as exactly one value of the type, nested in depth others.
func readAs(text, want string, depth int) (any, bool) {
	value, err := parse([]byte(text), depth)
	if err != nil {
		return nil, false
	}
	switch v := value.(type) {
	case json.Number:
		if v.String() != text {
			return nil, false
		}
		_, err := strconv.ParseInt(text, 10, 64)
		return v, want == "number" || want == "integer" && err == nil
	case bool:
		return v, want == "boolean" && text == strconv.FormatBool(v)
	case map[string]any:
		return v, want == "object"
	case []any:
		return v, want == "array"
	}
	return nil, false
}

// isItem reports whether value has the type that an array's items have.
func (r *repairer) isItem(value any, array map[string]any) bool {
	items := object(array["items"])
	if ref, ok := items["$ref"].(string); ok {
		items = object(at(r.schema.doc, ref))
	}
	got := typeName(value)
	fits := func(want any) bool { return want == got || want == "number" && got == "integer" }
	if list, ok := items["type"].([]any); ok {
		return slices.ContainsFunc(list, fits)
	}
	return fits(items["type"])
}

// replace puts a value in the place of another.
func (r *repairer) replace(path []string, value any) {
	if len(path) == 0 {
		r.root = value
		return
	}
	last := path[len(path)-1]
	holder, _ := valueAt(r.root, path[:len(path)-1])
	switch h := holder.(type) {
	case map[string]any:
		h[last] = value
	case []any:
		if i, err := strconv.Atoi(last); err == nil && i < len(h) {
			h[i] = value
		}
	}
}

// valueAt returns the value at a place below root.
func valueAt(root any, path []string) (any, bool) {
	value := root
	for _, name := range path {
		switch v := value.(type) {
		case map[string]any:
			below, ok := v[name]
			if !ok {
				return nil, false
			}
			value = below
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// filled returns a value with the defaults of missing properties, at any depth of the objects in
// it, and whether there were any. It does not change the value. Conditional defaults are left to
// the plugin.
func (s *Schema) filled(schema map[string]any, value any, depth int) (any, bool) {
	const deepest = 8 // a schema may refer to itself
	given, ok := value.(map[string]any)
	if !ok || depth > deepest {
		return value, false
	}
	changed := false
	set := func(name string, to any) {
		if !changed {
			given, changed = maps.Clone(given), true
		}
		given[name] = to
	}
	for name, sub := range object(schema["properties"]) {
		below := object(sub)
		if current, has := given[name]; !has {
			if value, has := below["default"]; has {
				set(name, value)
			}
		} else if next, any := s.filled(below, current, depth+1); any {
			set(name, next)
		}
	}
	same, _ := schema["allOf"].([]any)
	if ref, ok := schema["$ref"].(string); ok {
		same = append(slices.Clip(same), at(s.doc, ref))
	}
	for _, sub := range same {
		if next, any := s.filled(object(sub), given, depth+1); any {
			given, changed = object(next), true
		}
	}
	return given, changed
}
