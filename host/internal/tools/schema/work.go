package schema

import (
	"errors"
	"slices"
	"strings"
)

// Limits of the cost of checking. Recursive alternatives double the work with each
// level of a value, so a few lines of schema could keep the host busy forever.
const (
	// maxWork is the largest number of schemas that one value, over all levels down to a leaf, may
	// be compared with.
	maxWork = 10_000
	// maxSteps limits the computation of that number.
	maxSteps = 500_000
)

var errTooMuchWork = errors.New("at the root: checking could take too long, because alternatives are recursive; " +
	"give them properties with different names")

// checkWork refuses a schema that could take too long to check.
func checkWork(doc map[string]any) error {
	w := work{doc: doc, memo: make(map[workKey]int), beside: make(map[string]map[string]int)}
	if w.below("#", MaxDepth) > maxWork || w.steps > maxSteps {
		return errTooMuchWork
	}
	return nil
}

// work counts the schemas that values are compared with. JSON pointers identify schemas.
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

// below returns the number of schemas that a value with some levels is compared with, on the path
// to its most expensive leaf: those that describe the value, and those that these have for the same
// part of it.
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

// same returns the schemas that a value is compared with whenever it is compared with the given
// one, and how often.
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

// escapeFragment escapes a name in the JSON pointer of a URI fragment (RFC 6901, section 6).
var escapeFragment = strings.NewReplacer("~", "~0", "/", "~1", "%", "%25")

// fragment returns a path as the continuation of a JSON pointer.
func fragment(path []string) string {
	names := slices.Clone(path)
	for i, name := range names {
		names[i] = escapeFragment.Replace(name)
	}
	return "/" + strings.Join(names, "/")
}
