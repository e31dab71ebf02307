package sdk

import (
	"reflect"
	"slices"
	"strings"
)

// nils lists the places in values of a type where a nil list or map can be.
// encoding/json writes these as null, which a schema with an array does not
// allow and a model may misread, so they are replaced by empty ones. A nil *nils
// has no places.
//
// A tool has one *nils. A result without nils is not copied.
type nils struct {
	self   bool  // the value itself is a list or a map
	inside *nils // of the elements of a list or a map, or the target of a pointer
	fields []nilField
}

type nilField struct {
	index int
	nils  *nils
}

// nilsIn returns the places in values of type t, which holds no cycles.
func nilsIn(t reflect.Type) *nils {
	if s, ok := (&inferrer{use: results}).special(t, ""); ok {
		if s.ContentEncoding != "" {
			return &nils{self: true} // bytes; other types write themselves
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		return &nils{self: true, inside: nilsIn(t.Elem())}
	case reflect.Array, reflect.Pointer:
		if inside := nilsIn(t.Elem()); inside != nil {
			return &nils{inside: inside}
		}
	case reflect.Struct:
		n := &nils{}
		for f := range t.Fields() {
			if below := nilsInField(f); below != nil {
				n.fields = append(n.fields, nilField{f.Index[0], below})
			}
		}
		if len(n.fields) > 0 {
			return n
		}
	}
	return nil
}

// nilsInField returns the places in a field, unless nil leaves it out of the JSON.
func nilsInField(f reflect.StructField) *nils {
	tag := f.Tag.Get("json")
	embedded := f.Anonymous && f.Type.Kind() == reflect.Struct // its own fields may be exported
	if tag == "-" || !f.IsExported() && !embedded {
		return nil
	}
	n := nilsIn(f.Type)
	_, options, _ := strings.Cut(tag, ",")
	for option := range strings.SplitSeq(options, ",") {
		if n != nil && (option == "omitempty" || option == "omitzero") {
			n.self = false
		}
	}
	if n == nil || !n.self && n.inside == nil && n.fields == nil {
		return nil
	}
	return n
}

// found reports whether v has a nil in one of the places.
func (n *nils) found(v reflect.Value) bool {
	if n == nil {
		return false
	}
	if n.self && v.IsNil() {
		return true
	}
	switch v.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && n.inside.found(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := 0; n.inside != nil && i < v.Len(); i++ {
			if n.inside.found(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for i := v.MapRange(); n.inside != nil && i.Next(); {
			if n.inside.found(i.Value()) {
				return true
			}
		}
	case reflect.Struct:
		return slices.ContainsFunc(n.fields, func(f nilField) bool { return f.nils.found(v.Field(f.index)) })
	}
	return false
}

// fill replaces the nils in v, which must be settable. It copies what it changes,
// because a tool may return a value that other goroutines read.
func (n *nils) fill(v reflect.Value) {
	if n == nil {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			v.Set(n.inside.filled(v.Elem()).Addr())
		}
	case reflect.Slice:
		switch {
		case !v.IsNil() && n.inside != nil:
			v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v))
			n.fillElements(v)
		case v.IsNil() && n.self:
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
	case reflect.Array:
		n.fillElements(v)
	case reflect.Map:
		switch {
		case !v.IsNil() && n.inside != nil:
			full := reflect.MakeMapWithSize(v.Type(), v.Len())
			for i := v.MapRange(); i.Next(); {
				full.SetMapIndex(i.Key(), n.inside.filled(i.Value()))
			}
			v.Set(full)
		case v.IsNil() && n.self:
			v.Set(reflect.MakeMap(v.Type()))
		}
	case reflect.Struct:
		for _, f := range n.fields {
			f.nils.fill(v.Field(f.index))
		}
	}
}

func (n *nils) fillElements(v reflect.Value) {
	for i := range v.Len() {
		n.inside.fill(v.Index(i))
	}
}

// filled returns a copy of v without nils.
func (n *nils) filled(v reflect.Value) reflect.Value {
	full := reflect.New(v.Type()).Elem()
	full.Set(v)
	n.fill(full)
	return full
}
