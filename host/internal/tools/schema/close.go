package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// closeSchema makes every object in a document that lists its properties
// refuse all others, unless it says itself what may stand beside them. An
// object that lists none is a map and stays open. The root cannot stay open to
// anything at all.
func closeSchema(doc map[string]any) {
	mixins := make(map[string]bool)
	findMixins(doc, false, mixins)
	if doc["properties"] == nil {
		doc["properties"] = map[string]any{}
	}
	if doc["additionalProperties"] == true {
		delete(doc, "additionalProperties") // an argument that nobody describes is a mistake
	}
	closeBelow(doc, "#", part, mixins)
}

// findMixins notes the definitions that only add to another schema. Closing
// one of these would refuse the properties of whatever it is added to.
func findMixins(schema map[string]any, adds bool, mixins map[string]bool) {
	ref, ok := schema["$ref"].(string)
	if ok && (adds || schema["properties"] != nil) {
		mixins[ref] = true
	}
	_ = subschemas(schema, func(_ []string, sub any, pos position) error {
		if below := object(sub); below != nil {
			findMixins(below, pos == inPlace && (adds || !onlyChooses(schema)), mixins)
		}
		return nil
	})
}

// onlyChooses reports whether a schema does no more than offer alternatives,
// such as an object or null. Each of them then says alone which properties
// there are.
func onlyChooses(schema map[string]any) bool {
	choices := 0
	for keyword := range schema {
		switch {
		case keyword == "anyOf" || keyword == "oneOf":
			choices++
		case keyword == "properties" || keyword == "$ref" || positionOf(keyword) == inPlace:
			return false
		}
	}
	return choices == 1
}

func closeBelow(schema map[string]any, place string, pos position, mixins map[string]bool) {
	_, open := schema["additionalProperties"]
	_, unevaluated := schema["unevaluatedProperties"]
	closable := pos != inPlace && !mixins[place]
	closes := closable && schema["properties"] != nil && !open && !unevaluated
	if closes && composed(schema) {
		schema["unevaluatedProperties"] = false
	} else if closes {
		schema["additionalProperties"] = false
	}
	_ = subschemas(schema, func(path []string, sub any, pos position) error {
		if below := object(sub); below != nil && pos != condition {
			if pos == inPlace && closable && onlyChooses(schema) {
				pos = part
			}
			closeBelow(below, place+fragment(path), pos, mixins)
		}
		return nil
	})
}

// composed reports whether schemas beside this one describe the same value.
func composed(schema map[string]any) bool {
	for keyword := range schema {
		if positionOf(keyword) == inPlace || keyword == "$ref" || keyword == "$dynamicRef" {
			return true
		}
	}
	return false
}

// withoutKeywords returns a copy of a schema without the keywords that are
// the host's own. Properties, definitions and examples may have any name.
func withoutKeywords(schema map[string]any) map[string]any {
	clean := make(map[string]any, len(schema))
	for keyword, value := range schema {
		switch {
		case strings.HasPrefix(keyword, "x-"):
		case holdsMany(keyword):
			named := make(map[string]any)
			for name, sub := range object(value) {
				named[name] = cleanValue(sub)
			}
			clean[keyword] = named
		case positionOf(keyword) != 0:
			clean[keyword] = cleanValue(value)
		default:
			clean[keyword] = value
		}
	}
	return clean
}

func cleanValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return withoutKeywords(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = cleanValue(item)
		}
		return list
	}
	return value
}

// The bounds of whole numbers whose schema has none.
var (
	leastInteger    = json.Number(strconv.FormatInt(math.MinInt64, 10))
	greatestInteger = json.Number(strconv.FormatInt(math.MaxInt64, 10))
)

// boundIntegers gives every schema of whole numbers the bounds of 64 bits,
// which is what plugins can hold. Whoever exceeds them reads a mistake like
// any other.
func boundIntegers(schema map[string]any) {
	if wholeOnly(schema["type"]) {
		if !within(schema["minimum"]) {
			schema["minimum"] = leastInteger
		}
		if !within(schema["maximum"]) {
			schema["maximum"] = greatestInteger
		}
	}
	_ = subschemas(schema, func(_ []string, sub any, pos position) error {
		if below := object(sub); below != nil && pos != condition {
			boundIntegers(below)
		}
		return nil
	})
}

// wholeOnly reports whether a type lets whole numbers pass and no others.
func wholeOnly(typ any) bool {
	if list, ok := typ.([]any); ok {
		return slices.Contains(list, any("integer")) && !slices.Contains(list, any("number"))
	}
	return typ == "integer"
}

// within reports whether a bound of a schema is there and within 64 bits.
func within(bound any) bool {
	n, ok := bound.(json.Number)
	if !ok {
		return false
	}
	value := rational(n)
	return value.Cmp(new(big.Rat).SetInt64(math.MinInt64)) >= 0 && value.Cmp(new(big.Rat).SetInt64(math.MaxInt64)) <= 0
}

// appendNumber writes a whole number of 64 bits in digits, however it was
// written: 1.0 and 1e2 are integers to JSON Schema, but not to those who read
// the arguments. Any other number stays as it is.
func appendNumber(b []byte, n json.Number) []byte {
	if strings.ContainsAny(n.String(), ".eE") {
		if value := rational(n); value.IsInt() && value.Num().IsInt64() {
			return strconv.AppendInt(b, value.Num().Int64(), 10)
		}
	}
	return append(b, n...)
}
