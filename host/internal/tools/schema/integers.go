package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

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
