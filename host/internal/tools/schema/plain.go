package schema

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxMembers is how many properties an object of a plain schema may have: the
// bits that note which ones a value has.
const maxMembers = 64

// plain is a schema that says of a value its types, of an object what its
// properties are and which it must have, of an array what its items are, and
// nothing else: that of almost every result. Whether a text fits it shows while
// it is read, without making values of it.
type plain struct {
	members  map[string]member // of an object; nil if the value cannot be one
	required uint64            // the bits of the members that an object must have
	items    *plain            // of an array; nil if the value cannot be one

	text, number, integer, boolean, null bool // whether the value can be one
}

// member is a property of an object.
type member struct {
	schema *plain
	bit    uint64
}

// compilePlain returns nil if the schema says more than a plain one can. The
// schema must be valid.
func compilePlain(schema map[string]any) *plain {
	for keyword := range schema {
		switch keyword {
		case "type", "properties", "required", "additionalProperties", "items", // what it says
			"$schema", "title", "description", "default", "deprecated", "examples": // for readers only
		default:
			return nil
		}
	}
	var p plain
	types, several := schema["type"].([]any)
	if !several {
		types = []any{schema["type"]}
	}
	for _, name := range types {
		if !p.allow(name, schema) {
			return nil
		}
	}
	return &p
}

// allow adds a type to those that the value can have, and reports whether what
// the schema says of that type is plain.
func (p *plain) allow(name any, schema map[string]any) bool {
	switch name {
	case "object":
		return p.allowObject(schema)
	case "array":
		p.items = compilePlain(object(schema["items"]))
		return p.items != nil
	case "string":
		p.text = true
	case "number":
		p.number = true
	case "integer":
		p.integer = true
	case "boolean":
		p.boolean = true
	case "null":
		p.null = true
	default:
		return false
	}
	return true
}

func (p *plain) allowObject(schema map[string]any) bool {
	properties := object(schema["properties"])
	if len(properties) > maxMembers {
		return false
	}
	p.members = make(map[string]member, len(properties))
	for name, property := range properties {
		below := compilePlain(object(property))
		if below == nil || strings.ContainsFunc(name, needsEscape) {
			return false
		}
		p.members[name] = member{schema: below, bit: 1 << len(p.members)}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		named, _ := name.(string)
		m, ok := p.members[named]
		if !ok {
			return false
		}
		p.required |= m.bit
	}
	return true
}

// fits reports whether a text is JSON that fits the schema. Of some texts that
// fit it says that they do not: those with a property that the schema does not
// name or whose name has an escape, and those with an integer that has a point
// or an exponent.
func (p *plain) fits(text json.RawMessage) bool {
	r := reader{text: text}
	if !r.fits(p) {
		return false
	}
	r.space()
	return r.pos == len(r.text)
}

// fits passes a value, and reports whether it fits.
func (r *reader) fits(p *plain) bool {
	if r.begin() != nil {
		return false
	}
	switch c := r.text[r.pos]; {
	case c == '{':
		return p.members != nil && r.fitsObject(p)
	case c == '[':
		return p.items != nil && r.fitsArray(p.items)
	case c == '"':
		return p.text && r.fitsText()
	case c == 't':
		return p.boolean && r.takeWord("true")
	case c == 'f':
		return p.boolean && r.takeWord("false")
	case c == 'n':
		return p.null && r.takeWord("null")
	case c != '-' && !isDigit(c):
		return false
	default:
		return (p.number || p.integer) && r.fitsNumber(p)
	}
}

func (r *reader) fitsObject(p *plain) bool {
	if r.enter() != nil {
		return false
	}
	var has uint64
	for more := !r.take('}'); more; {
		m, ok := r.takeName(p.members)
		if !ok || has&m.bit != 0 || !r.take(':') || !r.fits(m.schema) {
			return false
		}
		has |= m.bit
		if more = r.take(','); !more && !r.take('}') {
			return false
		}
	}
	r.depth--
	return has&p.required == p.required
}

// takeName passes the name of a member, spelt without escapes.
func (r *reader) takeName(members map[string]member) (member, bool) {
	if !r.take('"') {
		return member{}, false
	}
	start := r.pos
	for r.pos < len(r.text) && r.text[r.pos] != '"' {
		r.pos++
	}
	m, ok := members[string(r.text[start:r.pos])]
	return m, ok && r.take('"')
}

func (r *reader) fitsArray(items *plain) bool {
	if r.enter() != nil {
		return false
	}
	for more := !r.take(']'); more; {
		if !r.fits(items) {
			return false
		}
		if more = r.take(','); !more && !r.take(']') {
			return false
		}
	}
	r.depth--
	return true
}

func (r *reader) fitsText() bool {
	_, err := r.passString()
	return err == nil
}

func (r *reader) fitsNumber(p *plain) bool {
	start := r.pos
	return r.passNumber() == nil && (p.number || !bytes.ContainsAny(r.text[start:r.pos], ".eE"))
}

func needsEscape(c rune) bool { return c < ' ' || c == '"' || c == '\\' }
