package schema

import (
	"errors"
	"slices"
	"strings"
)

// Bounds of what checking may cost. Alternatives that lead back to themselves
// double the work with each level of a value, so that a few lines of schema
// could keep the host busy for ever.
const (
	// maxWork is how many schemas a value may have to be compared with, over
	// all its levels down to one leaf.
	maxWork = 10_000
	// maxSteps bounds the search for that number.
	maxSteps = 500_000
)

var errTooMuchWork = errors.New("at the root: checking could take too long, since alternatives lead back to themselves; " +
	"tell them apart by the names of their properties")

// checkWork refuses a schema that could take too long to check.
func checkWork(doc map[string]any) error {
	w := work{doc: doc, memo: make(map[workKey]int), beside: make(map[string]map[string]int)}
	if w.below("#", MaxDepth) > maxWork || w.steps > maxSteps {
		return errTooMuchWork
	}
	return nil
}

// work counts the schemas that values are compared with. Schemas go by their
// JSON pointers.
type work struct {
	doc    map[string]any
	memo   map[workKey]int
	beside map[string]map[string]int // see [work.same]
	steps  int
}

type workKey struct {
	schema string
	levels int
}

// below returns how many schemas a value with some levels is compared with, on
// the way to its most costly leaf: all those that describe the value itself,
// and all that these have for one and the same part of it.
func (w *work) below(schema string, levels int) int {
	key := workKey{schema, levels}
	if known, ok := w.memo[key]; ok {
		return known
	}
	const anyName = ""
	total, parts := 0, make(map[string]int)
	for other, times := range w.same(schema) {
		total = min(total+times, maxWork+1)
		if levels == 0 {
			continue
		}
		node := object(at(w.doc, other))
		_ = subschemas(node, func(path []string, sub any, pos position) error {
			w.steps++
			if object(sub) == nil || pos != property && pos != part && path[0] != "contains" {
				return nil
			}
			if total > maxWork || w.steps > maxSteps {
				return errTooMuchWork
			}
			name := anyName
			if path[0] == "properties" {
				name = path[1]
			}
			parts[name] = min(parts[name]+times*w.below(other+fragment(path), levels-1), maxWork+1)
			return nil
		})
	}
	most := 0
	for name, cost := range parts {
		if name != anyName {
			most = max(most, cost)
		}
	}
	total = min(total+most+parts[anyName], maxWork+1)
	w.memo[key] = total
	return total
}

// same returns the schemas that a value is compared with wherever it is
// compared with one, and how often with each.
func (w *work) same(schema string) map[string]int {
	if known, ok := w.beside[schema]; ok {
		return known // or nil within a cycle, where checking stops too
	}
	w.beside[schema] = nil
	found := map[string]int{schema: 1}
	add := func(other string) {
		for name, times := range w.same(other) {
			w.steps++
			found[name] = min(found[name]+times, maxWork+1)
		}
	}
	node := object(at(w.doc, schema))
	if ref, ok := node["$ref"].(string); ok {
		add(ref)
	}
	_ = subschemas(node, func(path []string, sub any, pos position) error {
		if w.steps > maxSteps {
			return errTooMuchWork
		}
		if object(sub) != nil && (pos == inPlace || path[0] == "if" || path[0] == "not") {
			add(schema + fragment(path))
		}
		return nil
	})
	w.beside[schema] = found
	return found
}

// fragment is a path as the continuation of a JSON pointer.
func fragment(path []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1", "%", "%25")
	names := slices.Clone(path)
	for i, name := range names {
		names[i] = escape.Replace(name)
	}
	return "/" + strings.Join(names, "/")
}
