package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// dialect is the JSON Schema version of the plugin contract.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// dialects are the versions that a schema of another program may name. It is compiled by the rules of
// its own version.
var dialects = []string{
	dialect, "https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema",
}

// checkRules checks the rules of the plugin contract beyond JSON Schema. In a schema of another
// program, properties need no type and no description.
func checkRules(doc map[string]any, foreign bool) error {
	allowed := []string{dialect}
	if foreign {
		allowed = dialects
	}
	if doc["type"] != "object" {
		return errors.New(`at the root: the type must be "object", since arguments have names`)
	}
	if version, ok := doc["$schema"]; ok && !slices.Contains(allowed, strings.TrimSuffix(fmt.Sprint(version), "#")) {
		return fmt.Errorf("at /$schema: the version must be %s", strings.Join(allowed, " or "))
	}
	if err := checkReferences(doc, nil); err != nil {
		return err
	}
	if err := checkWork(doc); err != nil {
		return err
	}
	c := rulesCheck{doc: doc, foreign: foreign}
	return c.schema(doc, nil, nil, part)
}

// checkReferences checks that a schema and its subschemas refer only to the document itself.
func checkReferences(schema map[string]any, path []string) error {
	ref, ok := schema["$ref"].(string)
	if ok && ref != "#" && !strings.HasPrefix(ref, "#/") {
		return fmt.Errorf(`at %s: $ref must stay inside the schema and begin with "#/", got %s`, pointer(path), quote(ref))
	}
	if schema["$dynamicRef"] != nil {
		return fmt.Errorf("at %s: $dynamicRef is not supported, use $ref", pointer(path))
	}
	if len(path) > 0 && schema["$id"] != nil {
		return fmt.Errorf("at %s: $id may stand at the root only", pointer(path))
	}
	return subschemas(schema, func(below []string, sub any, _ position) error {
		if object(sub) == nil {
			return nil
		}
		return checkReferences(object(sub), slices.Concat(path, below))
	})
}

// rulesCheck walks through a schema and stops at the first broken rule.
type rulesCheck struct {
	doc     map[string]any
	foreign bool
	raw     string // the property marked x-raw, or ""
}

// schema checks one schema and its subschemas. declared are the known properties of the value that
// the schema describes.
func (c *rulesCheck) schema(schema map[string]any, path []string, declared map[string]any, pos position) error {
	if pos != inPlace {
		declared = object(schema["properties"])
	}
	if err := checkRole(schema, path, pos); err != nil {
		return err
	}
	if err := aliasCollision(schema, path); err != nil {
		return err
	}
	return subschemas(schema, func(below []string, sub any, subPos position) error {
		useless := (below[0] == "then" || below[0] == "else") && schema["if"] == nil
		if pos == condition || useless || below[0] == "contentSchema" {
			subPos = condition
		}
		subPath := slices.Concat(path, below)
		if subPos == property {
			refines := pos == inPlace && declared[below[1]] != nil
			if err := c.property(sub, subPath, refines); err != nil {
				return err
			}
		}
		if object(sub) == nil {
			return nil
		}
		return c.schema(object(sub), subPath, declared, subPos)
	})
}

// property checks one property. A property that only refines another declaration needs no type and
// description.
func (c *rulesCheck) property(sub any, path []string, refines bool) error {
	schema := object(sub)
	if schema == nil {
		if sub == false || refines || c.foreign {
			return nil
		}
		return fmt.Errorf("at %s: the property has no type", pointer(path))
	}
	refines = refines || c.foreign
	if !refines && !c.typed(schema, 0) {
		return fmt.Errorf("at %s: the property has no type", pointer(path))
	}
	if !refines && !c.described(schema) {
		return fmt.Errorf("at %s: the property has no description", pointer(path))
	}
	return c.keywords(schema, path)
}

// typed reports whether a schema restricts the types of a value, directly or through its parts.
func (c *rulesCheck) typed(schema map[string]any, depth int) bool {
	if depth > MaxDepth || schema == nil {
		return false
	}
	for _, keyword := range []string{"type", "const", "enum"} {
		if _, ok := schema[keyword]; ok {
			return true
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		return c.typed(object(at(c.doc, ref)), depth+1)
	}
	untyped := func(sub any) bool { return !c.typed(object(sub), depth+1) }
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := schema[keyword].([]any); ok && len(list) > 0 {
			return !slices.ContainsFunc(list, untyped)
		}
	}
	return false
}

// described reports whether a schema, or the one that it refers to, has a description.
func (c *rulesCheck) described(schema map[string]any) bool {
	text, _ := schema["description"].(string)
	if strings.TrimSpace(text) != "" {
		return true
	}
	ref, ok := schema["$ref"].(string)
	if !ok {
		return false
	}
	text, _ = object(at(c.doc, ref))["description"].(string)
	return strings.TrimSpace(text) != ""
}

// checkVisible checks that titles and descriptions, which models read, have no invisible
// characters. In forms they are escaped instead.
func checkVisible(schema map[string]any, path []string) error {
	for _, keyword := range []string{"title", "description"} {
		if text, _ := schema[keyword].(string); tool.Visible(text) != text {
			return fmt.Errorf("at %s: the %s has control characters, or others that cannot be seen", pointer(path), keyword)
		}
	}
	return subschemas(schema, func(below []string, sub any, _ position) error {
		if object(sub) == nil {
			return nil
		}
		return checkVisible(object(sub), slices.Concat(path, below))
	})
}

// keywords checks the host's keywords of a property.
func (c *rulesCheck) keywords(schema map[string]any, path []string) error {
	if raw, ok := schema[tool.KeywordRaw]; ok {
		switch {
		case raw != true:
			return fmt.Errorf("at %s: %s must be true where it stands, got %s", pointer(path), tool.KeywordRaw, quote(raw))
		case len(path) != 2 || path[0] != "properties" || schema["type"] != "string":
			return fmt.Errorf("at %s: %s may mark a property of the root, of type string, only", pointer(path), tool.KeywordRaw)
		case c.raw != "":
			return fmt.Errorf("at %s: %s marks %s already, and it may mark one property only", pointer(path), tool.KeywordRaw, c.raw)
		}
		c.raw = path[1]
	}
	return nil
}

// checkRole checks a role. It refuses roles where the schema describes nothing, because they would
// have no effect.
func checkRole(schema map[string]any, path []string, pos position) error {
	role, ok := schema[tool.KeywordRole]
	if !ok {
		return nil
	}
	name, _ := role.(string)
	if !tool.Role(name).Valid() {
		return fmt.Errorf("at %s: %s must be one of %s, got %s", pointer(path), tool.KeywordRole, joinRoles(), quote(role))
	}
	if pos == condition {
		return fmt.Errorf("at %s: %s has no effect here: mark a property, or the items of a list", pointer(path), tool.KeywordRole)
	}
	return nil
}

func joinRoles() string {
	var names []string
	for _, role := range tool.Roles() {
		names = append(names, string(role))
	}
	return strings.Join(names, ", ")
}

// aliasCollision checks that each alias means one property.
func aliasCollision(schema map[string]any, path []string) error {
	properties := object(schema["properties"])
	owner := make(map[string]string)
	return subschemas(schema, func(below []string, sub any, pos position) error {
		value, ok := object(sub)[tool.KeywordAliases]
		if pos != property || !ok {
			return nil
		}
		list, ok := value.([]any)
		if !ok {
			return fmt.Errorf("at %s: %s must be a list of names, got %s",
				pointer(slices.Concat(path, below)), tool.KeywordAliases, quote(value))
		}
		for _, item := range list {
			alias, ok := item.(string)
			_, isProperty := properties[alias]
			switch {
			case !ok || alias == "":
				return fmt.Errorf("at %s: %s must hold names, got %s",
					pointer(slices.Concat(path, below)), tool.KeywordAliases, quote(item))
			case isProperty:
				return fmt.Errorf("at %s: the alias %s is the name of a property",
					pointer(slices.Concat(path, below)), quote(alias))
			case owner[alias] != "":
				return fmt.Errorf("at %s: the alias %s belongs to property %s already",
					pointer(slices.Concat(path, below)), quote(alias), quote(owner[alias]))
			}
			owner[alias] = below[len(below)-1]
		}
		return nil
	})
}

// rawProperty returns the name of the property marked x-raw, or "".
func rawProperty(doc map[string]any) string {
	for name, sub := range object(doc["properties"]) {
		if object(sub)[tool.KeywordRaw] == true {
			return name
		}
	}
	return ""
}
