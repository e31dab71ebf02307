package schema

import (
	"encoding/json"
	"math/big"
)

// usualMaximum is the least maximum that a list leaves out: it protects a plugin, and no model
// thinks of a value above it.
const usualMaximum = 100

// forList removes from a schema for clients what a model does not need to write arguments, and
// returns it. Each tool costs tokens in every request, and the check of a call reports what the
// list leaves out: that objects are closed, that a flag is off by default, and bounds that only
// unusual values break. Parts that describe alternatives stay as they are.
func forList(schema map[string]any) map[string]any {
	if schema["additionalProperties"] == false {
		delete(schema, "additionalProperties")
	}
	if schema["unevaluatedProperties"] == false {
		delete(schema, "unevaluatedProperties")
	}
	if schema["default"] == false {
		delete(schema, "default")
	}
	for _, keyword := range []string{"minimum", "minLength", "minItems"} {
		if bound, ok := schema[keyword].(json.Number); ok && rational(bound).Cmp(big.NewRat(1, 1)) <= 0 && rational(bound).Sign() >= 0 {
			delete(schema, keyword)
		}
	}
	for _, keyword := range []string{"maximum", "maxLength", "maxItems"} {
		if bound, ok := schema[keyword].(json.Number); ok && rational(bound).Cmp(big.NewRat(usualMaximum, 1)) >= 0 {
			delete(schema, keyword)
		}
	}
	_ = subschemas(schema, func(_ []string, sub any, pos position) error {
		if below := object(sub); below != nil && (pos == property || pos == part || pos == definition) {
			forList(below)
		}
		return nil
	})
	return schema
}
