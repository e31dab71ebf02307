package schema

import (
	"maps"
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// hidden stands where a secret was.
const hidden = "(hidden)"

// ValuesOf returns every text in arguments that has a role, in the order of
// their canonical text. What stands below a value with a role has it too, such
// as the items of a list. Where the schema offers alternatives, a value has the
// roles of all that allow its type: which one it fits is not asked. The
// arguments have passed [Schema.Check].
func (s *Schema) ValuesOf(role tool.Role, arguments map[string]any) []string {
	want := roleSetOf(role)
	if s.roles.within&want == 0 {
		return nil
	}
	var values []string
	eachText([]*spot{s.roles}, 0, arguments, func(text string, roles roleSet) {
		if roles&want != 0 {
			values = append(values, text)
		}
	})
	return values
}

// ListsOf returns, for every value that has a role, all texts in it and below,
// and for a list whose items have it those of all items: the words of a command.
// See [Schema.ValuesOf].
func (s *Schema) ListsOf(role tool.Role, arguments map[string]any) [][]string {
	want := roleSetOf(role)
	if s.roles.within&want == 0 {
		return nil
	}
	var lists [][]string
	var visit func(spots []*spot, value any)
	visit = func(spots []*spot, value any) {
		spots = besides(spots, value)
		whole := rolesOf(spots)&want != 0
		if items, ok := value.([]any); ok && !whole {
			for i, item := range items {
				whole = whole || rolesOf(besides(ofItem(spots, i), item))&want != 0
			}
		}
		if whole {
			var words []string
			eachText(spots, want, value, func(text string, _ roleSet) { words = append(words, text) })
			lists = append(lists, words)
			return
		}
		switch v := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				visit(ofProperty(spots, name), v[name])
			}
		case []any:
			for i, item := range v {
				visit(ofItem(spots, i), item)
			}
		}
	}
	visit([]*spot{s.roles}, arguments)
	return lists
}

// Hidden returns a copy of arguments in which "(hidden)" stands for each value
// of [tool.RoleSecret], whatever its type, and true. If there is none, it
// returns the arguments themselves and false. The arguments have passed
// [Schema.Check].
func (s *Schema) Hidden(arguments map[string]any) (map[string]any, bool) {
	if s.roles.within&roleSetOf(tool.RoleSecret) == 0 {
		return arguments, false
	}
	return hideIn(besides([]*spot{s.roles}, arguments), arguments)
}

// roleSet is a set of roles.
type roleSet uint8

// roleSetOf returns the set of one role; it is empty for one that is not in
// the closed list.
func roleSetOf(role tool.Role) roleSet {
	i := slices.Index(tool.Roles(), role)
	if i < 0 {
		return 0
	}
	return 1 << i
}

// eachText calls visit for every text in a value that has a role. The value is
// described by spots and stands below one that has the roles over.
func eachText(spots []*spot, over roleSet, value any, visit func(text string, roles roleSet)) {
	spots = besides(spots, value)
	roles := over | rolesOf(spots)
	if len(spots) == 0 && roles == 0 {
		return
	}
	switch v := value.(type) {
	case string:
		visit(v, roles)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachText(ofProperty(spots, name), roles, v[name], visit)
		}
	case []any:
		for i, item := range v {
			eachText(ofItem(spots, i), roles, item, visit)
		}
	}
}

// hide returns a value without its secrets. It copies no more than it changes.
func hide(spots []*spot, value any) (_ any, changed bool) {
	if spots = besides(spots, value); len(spots) == 0 || value == nil {
		return value, false
	}
	if rolesOf(spots)&roleSetOf(tool.RoleSecret) != 0 {
		return hidden, true
	}
	switch v := value.(type) {
	case map[string]any:
		return hideIn(spots, v)
	case []any:
		for i, item := range v {
			without, some := hide(ofItem(spots, i), item)
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

// hideIn is [hide] for the properties of an object. If the object itself is a
// secret, each of them is.
func hideIn(spots []*spot, holder map[string]any) (_ map[string]any, changed bool) {
	all := rolesOf(spots)&roleSetOf(tool.RoleSecret) != 0
	without := holder
	for name, value := range holder {
		instead, some := any(hidden), all
		if !all {
			instead, some = hide(ofProperty(spots, name), value)
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

// besides returns spots and all those that describe the same value, each once,
// without those that only describe values of other types.
func besides(spots []*spot, value any) []*spot {
	if len(spots) == 0 {
		return nil
	}
	kind := typeName(value)
	if len(spots) == 1 && len(spots[0].beside) == 0 && spots[0].describes(kind) {
		return spots
	}
	var all []*spot
	seen := make(map[*spot]bool)
	for add := slices.Clone(spots); len(add) > 0; {
		p := add[len(add)-1]
		add = add[:len(add)-1]
		if seen[p] || !p.describes(kind) {
			continue
		}
		seen[p] = true
		all = append(all, p)
		add = append(add, p.beside...)
	}
	return all
}

// rolesOf returns the roles that a value has which all spots describe.
func rolesOf(spots []*spot) roleSet {
	var roles roleSet
	for _, p := range spots {
		roles |= p.roles
	}
	return roles
}

// ofProperty returns the spots that describe a property of the value that
// spots describe.
func ofProperty(spots []*spot, name string) []*spot {
	var below []*spot
	for _, p := range spots {
		below = p.property(below, name)
	}
	return below
}

// ofItem is [ofProperty] for an item of a list.
func ofItem(spots []*spot, i int) []*spot {
	var below []*spot
	for _, p := range spots {
		below = p.item(below, i)
	}
	return below
}
