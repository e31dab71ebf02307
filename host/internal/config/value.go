package config

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The functions below return false if the argument is absent, null or wrong. If it is
// wrong, they record a mistake.

const unlimited = "unlimited"

// value evaluates an argument of type want. expected describes the values in messages,
// e.g. "a size such as \"64MiB\"". A string that spells a number or a bool counts as
// one, so that env() can give it.
func (d *decoder) value(attr *hcl.Attribute, want cty.Type, expected string) (cty.Value, bool) {
	if attr == nil {
		return cty.NilVal, false
	}
	v, ok := d.eval(attr.Expr)
	if !ok || v.IsNull() {
		return cty.NilVal, false
	}
	if got := v.Type(); got != want {
		converted, err := convert.Convert(v, want)
		if err != nil || got != cty.String {
			d.mistake(attr.Expr.Range(), "Wrong type", "Expected %s for %s, not %s.", expected, attr.Name, typeName(v))
			return cty.NilVal, false
		}
		v = converted
	}
	return v, true
}

// absent reports whether an argument is missing or null.
func (d *decoder) absent(attr *hcl.Attribute) bool {
	if attr == nil {
		return true
	}
	v, diags := attr.Expr.Value(d.ctx)
	return !diags.HasErrors() && v.IsNull()
}

// is reports whether an argument is a certain word.
func (d *decoder) is(attr *hcl.Attribute, word string) bool {
	if attr == nil {
		return false
	}
	v, diags := attr.Expr.Value(d.ctx)
	return !diags.HasErrors() && v.RawEquals(cty.StringVal(word))
}

// typeName describes the type of a value to a person.
func typeName(v cty.Value) string {
	switch t := v.Type(); {
	case t == cty.String:
		return "a string"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "a boolean"
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		return "a list"
	default:
		return "an object"
	}
}

// quote returns value for a message: in quotes if it is written out in the file,
// otherwise without its content, which may be secret.
func quote(expr hcl.Expression, value string) string {
	if diag.IsLiteral(expr) {
		return strconv.Quote(value)
	}
	return "the value of this expression"
}

func (d *decoder) text(attr *hcl.Attribute, expected string) (string, bool) {
	v, ok := d.value(attr, cty.String, expected)
	if !ok {
		return "", false
	}
	return v.AsString(), true
}

// flag reads true or false.
func (d *decoder) flag(attr *hcl.Attribute, byDefault bool) bool {
	v, ok := d.value(attr, cty.Bool, "true or false")
	if !ok {
		return byDefault
	}
	return v.True()
}

// choice reads one of a few words.
func (d *decoder) choice(attr *hcl.Attribute, words ...string) (string, bool) {
	expected := diag.Words(words)
	s, ok := d.text(attr, expected)
	if !ok {
		return "", false
	}
	if slices.Contains(words, s) {
		return s, true
	}
	d.mistake(attr.Expr.Range(), "Unknown "+attr.Name, "Expected %s for %s, not %s.%s", expected, attr.Name, quote(attr.Expr, s), diag.DidYouMean(s, words))
	return "", false
}

// isLabel reports whether a name can be shown in a line as it is, and has at most most
// bytes.
func isLabel(name string, most int) bool {
	return name != "" && len(name) <= most && tool.Visible(name) == name &&
		!strings.ContainsAny(name, "\n\t") && strings.TrimSpace(name) == name
}

func (d *decoder) tier(attr *hcl.Attribute) (tool.Tier, bool) {
	s, ok := d.choice(attr, tool.ReadOnly.String(), tool.SideEffecting.String(), tool.Privileged.String())
	if !ok {
		return 0, false
	}
	t, err := tool.ParseTier(s)
	return t, err == nil
}

const sizeExample = `a size such as "64MiB"`

// size reads a size of at least one byte.
func (d *decoder) size(attr *hcl.Attribute, expected string) (tool.ByteSize, bool) {
	s, ok := d.text(attr, expected)
	if !ok {
		return 0, false
	}
	size, err := tool.ParseByteSize(s)
	switch {
	case err != nil:
		d.mistake(attr.Expr.Range(), "Not a size", "Expected %s for %s (a whole number with B, KiB, MiB, GiB or TiB), not %s.",
			expected, attr.Name, quote(attr.Expr, s))
		return 0, false
	case size == 0:
		d.mistake(attr.Expr.Range(), "Not a size", "Expected %s for %s; it cannot be 0.", expected, attr.Name)
		return 0, false
	}
	return size, true
}

// sizeWithin reads a size within bounds, which expected describes.
func (d *decoder) sizeWithin(attr *hcl.Attribute, least, most tool.ByteSize, expected string) (tool.ByteSize, bool) {
	size, ok := d.size(attr, expected)
	if ok && (size < least || size > most) {
		d.mistake(attr.Expr.Range(), "Out of range", "Expected %s for %s, not %q.", expected, attr.Name, size)
		return 0, false
	}
	return size, ok
}

// count reads a whole number of at least least.
func (d *decoder) count(attr *hcl.Attribute, least uint64, expected string) (uint64, bool) {
	v, ok := d.value(attr, cty.Number, expected)
	if !ok {
		return 0, false
	}
	f := v.AsBigFloat()
	n, accuracy := f.Uint64()
	if !f.IsInt() || accuracy != big.Exact || n < least || n > math.MaxInt64 { // Uint64 calls 1.5 exact
		d.mistake(attr.Expr.Range(), "Wrong number", "Expected %s for %s, at least %d.", expected, attr.Name, least)
		return 0, false
	}
	return n, true
}

// words reads a list of strings with their places.
func (d *decoder) words(attr *hcl.Attribute, expected string) []word {
	return d.listOf(attr, expected, false)
}

// flatWords is like words, of a list whose elements may be lists of strings themselves, as registry()
// returns them.
func (d *decoder) flatWords(attr *hcl.Attribute, expected string) []word {
	return d.listOf(attr, expected, true)
}

func (d *decoder) listOf(attr *hcl.Attribute, expected string, flat bool) []word {
	if attr == nil {
		return nil
	}
	v, ok := d.eval(attr.Expr)
	if !ok || v.IsNull() {
		return nil
	}
	if !isList(v) {
		d.mistake(attr.Expr.Range(), "Wrong type", "Expected %s for %s, not %s.", expected, attr.Name, typeName(v))
		return nil
	}
	var list []word
	literals, _ := hcl.ExprList(attr.Expr)
	for i, element := range v.AsValueSlice() {
		expr := attr.Expr
		if i < len(literals) {
			expr = literals[i]
		}
		elements := []cty.Value{element}
		if flat && isList(element) && !element.IsNull() {
			elements = element.AsValueSlice()
		}
		for _, element := range elements {
			if element.Type() != cty.String || element.IsNull() {
				d.mistake(expr.Range(), "Wrong type", "Expected %s for %s; this element is not a string.", expected, attr.Name)
				continue
			}
			list = append(list, word{text: element.AsString(), expr: expr})
		}
	}
	return list
}

func isList(v cty.Value) bool {
	t := v.Type()
	return t.IsTupleType() || t.IsListType() || t.IsSetType()
}

// word is one string of a list.
type word struct {
	text string
	expr hcl.Expression
}

const day = 24 * time.Hour

const durationExample = `a duration such as "10s" or "5m"`

// duration reads a duration of more than zero.
func (d *decoder) duration(attr *hcl.Attribute, expected string) (time.Duration, bool) {
	return d.durationWithin(attr, 1, math.MaxInt64, expected+", more than zero,")
}

// durationWithin reads a duration within bounds, which expected describes.
func (d *decoder) durationWithin(attr *hcl.Attribute, least, most time.Duration, expected string) (time.Duration, bool) {
	s, ok := d.text(attr, expected)
	if !ok {
		return 0, false
	}
	t, err := parseDuration(s)
	switch {
	case err != nil:
		d.mistake(attr.Expr.Range(), "Not a duration", "Expected %s for %s, not %s.", expected, attr.Name, quote(attr.Expr, s))
		return 0, false
	case t < least || t > most:
		d.mistake(attr.Expr.Range(), "Out of range", "Expected %s for %s, not %s.", expected, attr.Name, quote(attr.Expr, s))
		return 0, false
	}
	return t, true
}

var errNotDays = errors.New("not a whole number of days")

// parseDuration is [time.ParseDuration] with optional leading days of 24 hours:
// "90d", "1d12h".
func parseDuration(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, errNotDays
	}
	t := time.Duration(n) * day
	if rest == "" {
		return t, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || strings.HasPrefix(rest, "+") || strings.HasPrefix(rest, "-") || t+more < t {
		return 0, errNotDays
	}
	return t + more, nil
}
