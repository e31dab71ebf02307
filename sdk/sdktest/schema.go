package sdktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/sdk/tool"
)

var jsonTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// specProblems returns the mistakes in a tool's specification.
func specProblems(t tool.Spec) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if !tool.ValidName(t.Name) {
		add("the name %q is not valid: expected a lower-case letter, then up to 63 of a-z, 0-9 and _", t.Name)
	}
	for _, alias := range t.Aliases {
		if !tool.ValidAlias(alias) {
			add("the alias %q is not valid: expected a letter, then up to 63 letters, digits and underscores", alias)
		}
	}
	if t.Description == "" {
		add("has no description; a model chooses tools by it")
	}
	for _, shown := range []struct{ what, text string }{
		{"description", t.Description}, {"title", t.Title}, {"category", t.Category}, {"search hint", t.SearchHint}, {"reason to be unavailable", t.Unavailable},
	} {
		if tool.Visible(shown.text) != shown.text {
			add("has invisible characters in its %s; a host refuses it", shown.what)
		}
	}
	if _, err := t.Tier.MarshalText(); err != nil {
		add("has no tier")
	}
	for _, problem := range inputProblems(t.InputSchema, t.Foreign) {
		add("input schema: %s", problem)
	}
	var in jsonschema.Schema
	_ = json.Unmarshal(t.InputSchema, &in) // reported by inputProblems
	for _, rule := range t.TierWhen {
		if in.Properties[rule.Property] == nil {
			add("a tier rule names %q, which is not an argument", rule.Property)
		}
		if _, err := rule.Tier.MarshalText(); err != nil {
			add("the tier rule for %q has no tier", rule.Property)
		}
		if len(rule.Equals) > 0 && !json.Valid(rule.Equals) {
			add("the tier rule for %q compares with something that is not JSON", rule.Property)
		}
	}
	if len(t.OutputSchema) > 0 {
		if out, err := resolve(t.OutputSchema); err != nil {
			add("output schema: %v", err)
		} else if out.Schema().Type != "object" {
			add("output schema: the root is not an object")
		}
	}
	return problems
}

// inputProblems returns what is wrong with the schema of arguments or
// settings. Properties of a foreign tool need no type and no description.
func inputProblems(raw []byte, foreign bool) []string {
	if len(raw) == 0 {
		return []string{"there is none"}
	}
	resolved, err := resolve(raw)
	if err != nil {
		return []string{err.Error()}
	}
	root := resolved.Schema()
	if root.Type != "object" {
		return []string{"the root is not an object"}
	}
	problems := objectProblems(root, "", foreign)
	marked := 0
	for _, property := range root.Properties {
		if property.Extra[tool.KeywordRaw] == true {
			marked++
		}
	}
	if marked > 1 {
		problems = append(problems, fmt.Sprintf("%d properties are marked %s, at most one can be", marked, tool.KeywordRaw))
	}
	return problems
}

// objectProblems checks the properties of an object, including nested ones.
func objectProblems(s *jsonschema.Schema, path string, foreign bool) []string {
	var problems []string
	add := func(at, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("property %q ", at)+fmt.Sprintf(format, args...))
	}
	taken := maps.Clone(s.Properties)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property, at := s.Properties[name], path+name
		if !foreign && property.Type == "" && len(property.Types) == 0 && property.Ref == "" && property.Enum == nil &&
			property.Const == nil && property.AnyOf == nil && property.OneOf == nil && property.AllOf == nil {
			add(at, "has no type")
		}
		for _, name := range append(property.Types, property.Type) {
			if name != "" && !slices.Contains(jsonTypes, name) {
				add(at, "has the unknown type %q, expected one of %q", name, jsonTypes)
			}
		}
		if property.Description == "" && !foreign {
			add(at, "has no description")
		}
		if role, ok := property.Extra[tool.KeywordRole]; ok {
			if text, ok := role.(string); !ok || !tool.Role(text).Valid() {
				add(at, "has the unknown role %v, expected one of %q", role, tool.Roles())
			}
		}
		if raw, ok := property.Extra[tool.KeywordRaw]; ok && (raw != true || path != "" || property.Type != "string") {
			add(at, "is marked %s, which only a string at the top can be", tool.KeywordRaw)
		}
		for _, alias := range aliasesOf(property) {
			if taken[alias] != nil {
				add(at, "has the alias %q, which is taken", alias)
			}
			if taken == nil {
				taken = map[string]*jsonschema.Schema{}
			}
			taken[alias] = property
		}
		problems = append(problems, objectProblems(property, at+".", foreign)...)
		if property.Items != nil {
			problems = append(problems, objectProblems(property.Items, at+"[].", foreign)...)
		}
	}
	for _, name := range s.Required {
		if s.Properties[name] == nil {
			add(path+name, "is required and not described")
		}
	}
	return problems
}

func aliasesOf(s *jsonschema.Schema) []string {
	list, _ := s.Extra[tool.KeywordAliases].([]any)
	var names []string
	for _, item := range list {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// resolve reads a schema and checks it, and its defaults.
func resolve(raw []byte) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %w", err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, fmt.Errorf("not a valid JSON Schema: %w", err)
	}
	return resolved, nil
}

// validate reports whether data satisfies schema; no schema allows anything.
func validate(schema, data []byte) error {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if len(schema) == 0 {
		return nil
	}
	resolved, err := resolve(schema)
	if err != nil {
		return err
	}
	return resolved.Validate(value)
}

// wrongTypes returns arguments that a schema refuses: for each property a value
// of another type.
func wrongTypes(schema []byte) []json.RawMessage {
	var s jsonschema.Schema
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	var list []json.RawMessage
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		wrong := map[string]any{name: true}
		if s.Properties[name].Type == "boolean" {
			wrong[name] = 7
		}
		raw, err := json.Marshal(wrong)
		if err == nil && validate(schema, raw) != nil {
			list = append(list, raw)
		}
	}
	return list
}
