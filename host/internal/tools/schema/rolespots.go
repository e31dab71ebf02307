package schema

import (
	"regexp"
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// spot is one schema of a document, as far as it leads to roles: the parts
// that lead to none are left out. It never changes once it is compiled.
type spot struct {
	roles  roleSet // of a value that it describes
	within roleSet // those, and all that it leads to

	types  []any   // of the values that it describes; none means all
	beside []*spot // schemas that describe the same value further

	declared map[string]any   // the names under "properties"
	named    map[string]*spot // of these, those that lead to roles
	patterns []patternSpot
	rest     *spot // of properties that are neither declared nor fit a pattern
	free     *spot // of properties that no schema evaluates, or more
	first    []*spot
	items    *spot // after the first
	more     *spot // of items that no schema evaluates, or more
}

// patternSpot describes the properties whose names fit.
type patternSpot struct {
	names *regexp.Regexp // nil fits all
	spot  *spot          // nil if it leads to no role
}

// describes reports whether values of a type fit the schema as far as that is
// all that is known of them. One that they do not fit is an alternative that
// does not hold.
func (p *spot) describes(kind string) bool {
	return len(p.types) == 0 || slices.Contains(p.types, any(kind)) || kind == "integer" && slices.Contains(p.types, any("number"))
}

// property appends the spots that describe a property.
func (p *spot) property(list []*spot, name string) []*spot {
	list = appendSpot(list, p.named[name])
	_, known := p.declared[name]
	if !known {
		list = appendSpot(list, p.free)
	}
	for _, pattern := range p.patterns {
		if pattern.names == nil || pattern.names.MatchString(name) {
			list = appendSpot(list, pattern.spot)
			known = known || pattern.names != nil
		}
	}
	if !known {
		list = appendSpot(list, p.rest)
	}
	return list
}

// item appends the spots that describe an item of a list.
func (p *spot) item(list []*spot, i int) []*spot {
	if i < len(p.first) {
		return appendSpot(list, p.first[i])
	}
	return appendSpot(appendSpot(list, p.items), p.more)
}

func appendSpot(list []*spot, p *spot) []*spot {
	if p == nil {
		return list
	}
	return append(list, p)
}

// compileSpots finds the roles in a document that has passed checkRules. The
// result is never nil.
func compileSpots(doc map[string]any) *spot {
	c := spotCompiler{doc: doc, spots: make(map[string]*spot), over: make(map[*spot][]*spot)}
	root := c.spot("#")
	c.spread()
	for _, p := range c.spots {
		p.prune()
	}
	return root
}

// spotCompiler makes spots. Schemas go by their JSON pointers.
type spotCompiler struct {
	doc   map[string]any
	spots map[string]*spot
	over  map[*spot][]*spot // which of them lead to one
}

// spot returns the spot for a schema, or nil for one that is no object.
func (c *spotCompiler) spot(schema string) *spot {
	if p, ok := c.spots[schema]; ok {
		return p
	}
	node := object(at(c.doc, schema))
	if node == nil {
		return nil
	}
	p := &spot{declared: object(node["properties"])}
	switch types := node["type"].(type) {
	case string:
		p.types = []any{types}
	case []any:
		p.types = types
	}
	c.spots[schema] = p // before what is below, which may lead back
	if name, ok := node[tool.KeywordRole].(string); ok {
		p.roles = roleSetOf(tool.Role(name))
		p.within = p.roles
	}
	to := func(schema string) *spot {
		below := c.spot(schema)
		if below != nil {
			c.over[below] = append(c.over[below], p)
		}
		return below
	}
	if ref, ok := node["$ref"].(string); ok {
		p.beside = appendSpot(p.beside, to(ref))
	}
	_ = subschemas(node, func(path []string, _ any, pos position) error {
		if pos != definition && pos != condition {
			p.lead(path, to(schema+fragment(path)))
		}
		return nil
	})
	return p
}

// lead notes where one keyword leads.
func (p *spot) lead(path []string, below *spot) {
	switch path[0] {
	case "properties":
		if p.named == nil {
			p.named = make(map[string]*spot)
		}
		p.named[path[1]] = below
	case "patternProperties":
		// What the validator takes for a pattern is one here; anything else
		// would fit all, to be safe.
		names, _ := regexp.Compile(path[1])
		p.patterns = append(p.patterns, patternSpot{names: names, spot: below})
	case "additionalProperties":
		p.rest = below
	case "unevaluatedProperties":
		p.free = below
	case "prefixItems":
		p.first = append(p.first, below)
	case "items":
		p.items = below
	case "unevaluatedItems":
		p.more = below
	case "contentSchema": // describes what a text means, and checks nothing
	default:
		p.beside = appendSpot(p.beside, below)
	}
}

// spread makes every spot know the roles that it leads to.
func (c *spotCompiler) spread() {
	var news []*spot
	for _, p := range c.spots {
		if p.roles != 0 {
			news = append(news, p)
		}
	}
	for len(news) > 0 { // each spot is news once per role at most
		p := news[len(news)-1]
		news = news[:len(news)-1]
		for _, over := range c.over[p] {
			if over.within|p.within != over.within {
				over.within |= p.within
				news = append(news, over)
			}
		}
	}
}

// prune leaves out what leads to no role.
func (p *spot) prune() {
	pruned := func(below *spot) *spot {
		if below == nil || below.within == 0 {
			return nil
		}
		return below
	}
	var beside []*spot
	for _, other := range p.beside {
		beside = appendSpot(beside, pruned(other))
	}
	p.beside = beside
	for name, below := range p.named {
		if pruned(below) == nil {
			delete(p.named, name)
		}
	}
	for i := range p.patterns {
		p.patterns[i].spot = pruned(p.patterns[i].spot)
	}
	for i := range p.first {
		p.first[i] = pruned(p.first[i])
	}
	p.rest, p.free, p.items, p.more = pruned(p.rest), pruned(p.free), pruned(p.items), pruned(p.more)
}
