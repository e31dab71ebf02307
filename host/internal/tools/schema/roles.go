package schema

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolhost/toolhost/sdk/tool"
)

// hidden replaces secrets.
const hidden = "(hidden)"

// HasRole reports whether any argument can have one of the roles.
func (s *Schema) HasRole(roles ...tool.Role) bool {
	return slices.ContainsFunc(roles, func(r tool.Role) bool { return s.rules().allow(roleSetOf(r)) })
}

// ValuesOf returns every text in arguments that has a role, in the order of the canonical text.
// Values below a value with a role, such as the items of a list, have it too. Where the schema
// offers alternatives, a value has the roles of all that allow its type. The arguments must have
// passed [Schema.Check]. The values of [tool.RoleRepository] are also values of [tool.RolePath].
func (s *Schema) ValuesOf(role tool.Role, arguments map[string]any) []string {
	want := roleSetOf(role)
	if role == tool.RolePath {
		want |= roleSetOf(tool.RoleRepository)
	}
	rules := s.rules()
	if !rules.allow(want) {
		return nil
	}
	var values []string
	rules.roles.eachText(rules.root(), 0, arguments, func(text string, roles roleSet) {
		if roles&want != 0 {
			values = append(values, text)
		}
	})
	return values
}

// ListsOf returns, for every value with a role, all texts in it and below. For a list whose items
// have the role, these are the texts of all items: the words of a command. See [Schema.ValuesOf].
func (s *Schema) ListsOf(role tool.Role, arguments map[string]any) [][]string {
	want := roleSetOf(role)
	rules := s.rules()
	if !rules.allow(want) {
		return nil
	}
	var lists [][]string
	var visit func(schemas []*jsonschema.Schema, value any)
	visit = func(schemas []*jsonschema.Schema, value any) {
		schemas = rules.roles.beside(schemas, value)
		whole := rolesOf(schemas)&want != 0
		if items, ok := value.([]any); ok && !whole {
			for i, item := range items {
				whole = whole || rolesOf(rules.roles.beside(rules.roles.ofItem(schemas, i), item))&want != 0
			}
		}
		if whole {
			var words []string
			rules.roles.eachText(schemas, want, value, func(text string, _ roleSet) { words = append(words, text) })
			lists = append(lists, words)
			return
		}
		switch v := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				visit(rules.roles.ofProperty(schemas, name), v[name])
			}
		case []any:
			for i, item := range v {
				visit(rules.roles.ofItem(schemas, i), item)
			}
		}
	}
	visit(rules.root(), arguments)
	return lists
}

// Hidden returns a copy of arguments with "(hidden)" instead of each value of [tool.RoleSecret],
// and true. Without secrets it returns the arguments themselves and false. The arguments must
// have passed [Schema.Check].
func (s *Schema) Hidden(arguments map[string]any) (map[string]any, bool) {
	rules := s.rules()
	if !rules.allow(roleSetOf(tool.RoleSecret)) {
		return arguments, false
	}
	return rules.roles.hideIn(rules.roles.beside(rules.root(), arguments), arguments)
}

// allow reports whether any argument can have one of the roles.
func (r *rules) allow(some roleSet) bool { return r.roles[r.validator]&some != 0 }

// root returns the schemas that describe all arguments.
func (r *rules) root() []*jsonschema.Schema { return []*jsonschema.Schema{r.validator} }

// roleSet is a set of roles.
type roleSet uint8

// roleSetOf returns the set of one role; it is empty for an unknown role.
func roleSetOf(role tool.Role) roleSet {
	i := slices.Index(tool.Roles(), role)
	if i < 0 {
		return 0
	}
	return 1 << i
}

// eachText calls visit for every text in a value that has a role. schemas describe the value; over
// are the roles of the values around it.
func (r roleMap) eachText(schemas []*jsonschema.Schema, over roleSet, value any, visit func(text string, roles roleSet)) {
	schemas = r.beside(schemas, value)
	roles := over | rolesOf(schemas)
	if len(schemas) == 0 && roles == 0 {
		return
	}
	switch v := value.(type) {
	case string:
		visit(v, roles)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			r.eachText(r.ofProperty(schemas, name), roles, v[name], visit)
		}
	case []any:
		for i, item := range v {
			r.eachText(r.ofItem(schemas, i), roles, item, visit)
		}
	}
}

// hide returns a value without its secrets. It copies only what it changes.
func (r roleMap) hide(schemas []*jsonschema.Schema, value any) (_ any, changed bool) {
	if schemas = r.beside(schemas, value); len(schemas) == 0 || value == nil {
		return value, false
	}
	if rolesOf(schemas)&roleSetOf(tool.RoleSecret) != 0 {
		return hidden, true
	}
	switch v := value.(type) {
	case map[string]any:
		return r.hideIn(schemas, v)
	case []any:
		for i, item := range v {
			without, some := r.hide(r.ofItem(schemas, i), item)
			if !some {
				continue
			}
			if !changed {
				v, changed = slices.Clone(v), true
			}
			v[i] = without
		}
		return v, changed
	}
	return value, false
}

// hideIn is [roleMap.hide] for the properties of an object. If the object is a secret, each
// property is.
func (r roleMap) hideIn(schemas []*jsonschema.Schema, holder map[string]any) (_ map[string]any, changed bool) {
	all := rolesOf(schemas)&roleSetOf(tool.RoleSecret) != 0
	without := holder
	for name, value := range holder {
		instead, some := any(hidden), all
		if !all {
			instead, some = r.hide(r.ofProperty(schemas, name), value)
		}
		if !some {
			continue
		}
		if !changed {
			without, changed = maps.Clone(holder), true
		}
		without[name] = instead
	}
	return without, changed
}

// roleMap holds the roles that each schema gives to a value, or to a part of it. It has
// no entry for schemas that lead to no role.
type roleMap map[*jsonschema.Schema]roleSet

// roleVocabulary has the compiler keep the role of each schema.
func roleVocabulary() *jsonschema.Vocabulary {
	return &jsonschema.Vocabulary{URL: "schema:///roles", Compile: func(_ *jsonschema.CompilerContext, schema map[string]any) (jsonschema.SchemaExt, error) {
		if name, ok := schema[tool.KeywordRole].(string); ok {
			return roleSetOf(tool.Role(name)), nil
		}
		return nil, nil
	}}
}

// Validate implements [jsonschema.SchemaExt]: a role allows all values.
func (roleSet) Validate(*jsonschema.ValidatorContext, any) {}

// rolesOf returns the roles of a value that all schemas describe.
func rolesOf(schemas []*jsonschema.Schema) roleSet {
	var roles roleSet
	for _, s := range schemas {
		for _, extension := range s.Extensions {
			if set, ok := extension.(roleSet); ok {
				roles |= set
			}
		}
	}
	return roles
}

// newRoleMap finds the roles that a schema and all below lead to.
func newRoleMap(root *jsonschema.Schema) roleMap {
	leads, over := make(roleMap), make(map[*jsonschema.Schema][]*jsonschema.Schema)
	var news []*jsonschema.Schema
	for look := []*jsonschema.Schema{root}; len(look) > 0; {
		s := look[len(look)-1]
		look = look[:len(look)-1]
		if _, seen := leads[s]; seen {
			continue
		}
		leads[s] = rolesOf([]*jsonschema.Schema{s})
		news = append(news, s)
		for _, below := range slices.Concat(furtherOf(s), partsOf(s)) {
			over[below] = append(over[below], s)
			look = append(look, below)
		}
	}
	for len(news) > 0 { // each schema is news once per role at most
		s := news[len(news)-1]
		news = news[:len(news)-1]
		for _, above := range over[s] {
			if leads[above]|leads[s] != leads[above] {
				leads[above] |= leads[s]
				news = append(news, above)
			}
		}
	}
	for s, roles := range leads {
		if roles == 0 {
			delete(leads, s)
		}
	}
	return leads
}

// furtherOf returns the schemas that describe the same value further.
func furtherOf(s *jsonschema.Schema) []*jsonschema.Schema {
	further := slices.Concat([]*jsonschema.Schema{s.Ref, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf)
	for _, other := range s.DependentSchemas {
		further = append(further, other)
	}
	return slices.DeleteFunc(further, func(other *jsonschema.Schema) bool { return other == nil })
}

// partsOf returns the schemas that describe parts of the value.
func partsOf(s *jsonschema.Schema) []*jsonschema.Schema {
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	parts := append(slices.Clone(s.PrefixItems), additional, s.UnevaluatedProperties, s.Items2020, s.UnevaluatedItems)
	for _, below := range s.Properties {
		parts = append(parts, below)
	}
	for _, below := range s.PatternProperties {
		parts = append(parts, below)
	}
	return slices.DeleteFunc(parts, func(part *jsonschema.Schema) bool { return part == nil })
}

// beside returns schemas and all those that describe the same value, each once, without
// those that lead to no role or describe only values of other types. One that a value
// does not fit is an alternative that does not apply.
func (r roleMap) beside(schemas []*jsonschema.Schema, value any) []*jsonschema.Schema {
	if len(schemas) == 0 {
		return nil
	}
	var types jsonschema.Types
	if types.Add(typeName(value)); typeName(value) == "integer" {
		types.Add("number")
	}
	var all []*jsonschema.Schema
	for add := slices.Clone(schemas); len(add) > 0; {
		s := add[len(add)-1]
		add = add[:len(add)-1]
		if r[s] == 0 || s.Types != nil && *s.Types&types == 0 || slices.Contains(all, s) {
			continue
		}
		all = append(all, s)
		add = append(add, furtherOf(s)...)
	}
	return all
}

// ofProperty returns the schemas of a property of the value that schemas describe.
func (r roleMap) ofProperty(schemas []*jsonschema.Schema, name string) []*jsonschema.Schema {
	var below []*jsonschema.Schema
	for _, s := range schemas {
		property, declared := s.Properties[name]
		below = r.add(below, property)
		if !declared {
			below = r.add(below, s.UnevaluatedProperties)
		}
		for pattern, other := range s.PatternProperties {
			if pattern.MatchString(name) {
				below, declared = r.add(below, other), true
			}
		}
		if additional, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !declared {
			below = r.add(below, additional)
		}
	}
	return below
}

// ofItem is [roleMap.ofProperty] for an item of a list.
func (r roleMap) ofItem(schemas []*jsonschema.Schema, i int) []*jsonschema.Schema {
	var below []*jsonschema.Schema
	for _, s := range schemas {
		if i < len(s.PrefixItems) {
			below = r.add(below, s.PrefixItems[i])
		} else {
			below = r.add(r.add(below, s.Items2020), s.UnevaluatedItems)
		}
	}
	return below
}

// add appends a schema that leads to a role.
func (r roleMap) add(list []*jsonschema.Schema, s *jsonschema.Schema) []*jsonschema.Schema {
	if r[s] == 0 {
		return list
	}
	return append(list, s)
}
