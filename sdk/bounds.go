package sdk

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/sdk/tool"
)

// bounds are the bounds of a value and of the values in it. A nil *bounds has
// none.
type bounds struct {
	low, high *float64 // of the number, or of the count
	counted   string   // what is counted, such as "characters"; "" for a number
	unit      string   // how the number is shown, see [keywordUnit]
	parts     map[string]*bounds
	items     *bounds // of the items of a list and the values of a map
}

// applyBounds reads the tags min and max: of a number they bound the value, of
// a string its length in characters, of a list the number of its items.
func (i *inferrer) applyBounds(f jsonField, s *jsonschema.Schema, at string) {
	for _, key := range []string{tagMin, tagMax} {
		text, ok := f.Tag.Lookup(key)
		if !ok {
			continue
		}
		if i.use == results {
			i.mistake(at, "a result has no bounds; remove the tag %q", key)
			return
		}
		switch {
		case s.Type == "integer" || s.Type == "number":
			i.boundNumber(f.Type, s, key, text, at)
		case s.Type == "string" && s.ContentEncoding == "":
			i.boundCount(&s.MinLength, &s.MaxLength, key, text, at)
		case s.Type == "array" && indirect(f.Type).Kind() == reflect.Slice:
			i.boundCount(&s.MinItems, &s.MaxItems, key, text, at)
		default:
			i.mistake(at, "tag %q needs a number, a string or a list", key)
			return
		}
	}
	if b := boundsOf(s); b != nil && b.low != nil && b.high != nil && *b.low > *b.high {
		i.mistake(at, "min %s is greater than max %s", b.show(*b.low), b.show(*b.high))
	}
}

func (i *inferrer) boundNumber(t reflect.Type, s *jsonschema.Schema, key, text, at string) {
	raw, err := parseTag(t, text)
	if err != nil {
		i.mistake(at, "%s %q does not fit: %v", key, text, err)
		return
	}
	var bound float64
	if err := json.Unmarshal(raw, &bound); err != nil {
		i.mistake(at, "%s %q does not fit: expected a number", key, text)
		return
	}
	if key == tagMin {
		s.Minimum = &bound
	} else {
		s.Maximum = &bound
	}
}

func (i *inferrer) boundCount(least, most **int, key, text, at string) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		i.mistake(at, "%s %q does not fit: expected a whole number", key, text)
		return
	}
	if key == tagMin {
		*least = &n
	} else {
		*most = &n
	}
}

// boundsOf collects the bounds of a value and of the values in it.
func boundsOf(s *jsonschema.Schema) *bounds {
	if s == nil {
		return nil
	}
	b := &bounds{low: s.Minimum, high: s.Maximum, items: boundsOf(s.Items)}
	if s.Type == "object" && b.items == nil {
		b.items = boundsOf(s.AdditionalProperties)
	}
	b.unit, _ = s.Extra[keywordUnit].(string)
	for _, c := range []struct {
		counted     string
		least, most *int
	}{{"characters", s.MinLength, s.MaxLength}, {"items", s.MinItems, s.MaxItems}} {
		if c.least != nil || c.most != nil {
			b.counted, b.low, b.high = c.counted, asFloat(c.least), asFloat(c.most)
		}
	}
	for name, property := range s.Properties {
		if below := boundsOf(property); below != nil {
			if b.parts == nil {
				b.parts = map[string]*bounds{}
			}
			b.parts[name] = below
		}
	}
	if b.low == nil && b.high == nil && b.items == nil && b.parts == nil {
		return nil
	}
	return b
}

func asFloat(n *int) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// outOfBounds is a value outside of its bounds.
type outOfBounds struct {
	path   []string // names and indices
	reason string   // such as "is 0, expected 1 to 100"
}

// check returns the first value in raw that is out of bounds, or nil. It
// ignores values of other types than the schema has.
func (b *bounds) check(raw json.RawMessage) *outOfBounds {
	if b == nil || len(raw) == 0 {
		return nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil
	}
	return b.find(value, nil)
}

func (b *bounds) find(value any, path []string) *outOfBounds {
	if b == nil {
		return nil
	}
	switch v := value.(type) {
	case float64:
		return b.compare(v, "is "+b.show(v), path)
	case string:
		n := utf8.RuneCountInString(v)
		return b.compare(float64(n), fmt.Sprintf("has %d %s", n, b.counted), path)
	case []any:
		if wrong := b.compare(float64(len(v)), fmt.Sprintf("has %d %s", len(v), b.counted), path); wrong != nil {
			return wrong
		}
		for n, item := range v {
			if wrong := b.items.find(item, append(slices.Clip(path), strconv.Itoa(n))); wrong != nil {
				return wrong
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			below := b.parts[name]
			if below == nil {
				below = b.items
			}
			if wrong := below.find(v[name], append(slices.Clip(path), name)); wrong != nil {
				return wrong
			}
		}
	}
	return nil
}

func (b *bounds) compare(n float64, got string, path []string) *outOfBounds {
	switch {
	case (b.low == nil || n >= *b.low) && (b.high == nil || n <= *b.high):
		return nil
	case b.high == nil:
		got += ", expected at least " + b.show(*b.low)
	case b.low == nil:
		got += ", expected at most " + b.show(*b.high)
	default:
		got += ", expected " + b.show(*b.low) + " to " + b.show(*b.high)
	}
	return &outOfBounds{path, got}
}

// show writes a number as people do, with its unit.
func (b *bounds) show(n float64) string {
	switch {
	case b.unit == unitBytes:
		return tool.ByteSize(n).String()
	case b.unit == unitDuration:
		return time.Duration(n).String()
	case n == math.Trunc(n) && math.Abs(n) < 1<<53:
		return strconv.FormatInt(int64(n), 10)
	default:
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
}

// shownPath joins the path of an argument as in "items[0].path".
func (o *outOfBounds) shownPath() string {
	var shown string
	for _, step := range o.path {
		if _, err := strconv.Atoi(step); err == nil {
			shown += "[" + step + "]"
			continue
		}
		shown = join(shown, step)
	}
	return shown
}
