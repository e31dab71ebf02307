package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// closeSchema makes every object that declares properties refuse all others, unless the schema
// allows them itself. An object without declared properties is a map and stays open. The root never
// accepts arbitrary properties, unless another program says that its tool does.
func closeSchema(doc map[string]any, foreign bool) {
	mixins := make(map[string]bool)
	findMixins(doc, false, mixins)
	if doc["properties"] == nil {
		doc["properties"] = map[string]any{}
	}
	if doc["additionalProperties"] == true && !foreign {
		delete(doc, "additionalProperties") // an undeclared argument is a mistake
	}
	closeBelow(doc, "#", part, mixins)
}

// findMixins collects definitions that only extend another schema. Closing one would refuse the
// properties of the schema that it extends.
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

// onlyChooses reports whether a schema only offers alternatives, such as an object or null. Each
// alternative then declares all properties.
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

// composed reports whether other schemas describe the same value.
func composed(schema map[string]any) bool {
	for keyword := range schema {
		if positionOf(keyword) == inPlace || keyword == "$ref" || keyword == "$dynamicRef" {
			return true
		}
	}
	return false
}

// withoutKeywords returns a copy of a schema without the host's keywords. Properties, definitions
// and examples may have any name.
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

// The limits of integers whose schema has none.
var (
	leastInteger    = json.Number(strconv.FormatInt(math.MinInt64, 10))
	greatestInteger = json.Number(strconv.FormatInt(math.MaxInt64, 10))
)

// boundIntegers limits every integer to the 64 bits that plugins can hold. Larger numbers are
// mistakes like any other.
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

// wholeOnly reports whether a type allows integers and no other numbers.
func wholeOnly(typ any) bool {
	if list, ok := typ.([]any); ok {
		return slices.Contains(list, any("integer")) && !slices.Contains(list, any("number"))
	}
	return typ == "integer"
}

// within reports whether a schema's limit exists and fits 64 bits.
func within(bound any) bool {
	n, ok := bound.(json.Number)
	if !ok {
		return false
	}
	value := rational(n)
	return value.Cmp(new(big.Rat).SetInt64(math.MinInt64)) >= 0 && value.Cmp(new(big.Rat).SetInt64(math.MaxInt64)) <= 0
}

// appendNumber writes a 64-bit integer in digits: JSON Schema treats 1.0 and 1e2 as integers, but
// programs do not. Other numbers keep their text.
func appendNumber(b []byte, n json.Number) []byte {
	if strings.ContainsAny(n.String(), ".eE") {
		if value := rational(n); value.IsInt() && value.Num().IsInt64() {
			return strconv.AppendInt(b, value.Num().Int64(), 10)
		}
	}
	return append(b, n...)
}
