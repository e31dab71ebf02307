package config

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/config/diag"
)

// setting is an evaluated part of a plugin's config block, with its place. The
// plugin's schema decides whether it is valid.
type setting struct {
	kind settingKind
	at   hcl.Range
	// expr is the evaluated expression; nil for blocks.
	expr hcl.Expression
	// value is the string, number, bool or null of a scalar.
	value cty.Value
	// fields are the fields of an object.
	fields map[string]*field
	// elements are the elements of a list, or the blocks of one type.
	elements []*setting
}

type settingKind int

const (
	// brokenSetting has no value; its mistake has been reported.
	brokenSetting settingKind = iota
	scalarSetting
	listSetting
	objectSetting
	// blocksSetting is one or more blocks of one type: an object if the schema has an
	// object, otherwise a list of objects.
	blocksSetting
)

// field is a setting with the place of its name.
type field struct {
	name hcl.Range
	*setting
}

// settingBody reads the inside of a block.
func (d *decoder) settingBody(body *hclsyntax.Body, at hcl.Range) *setting {
	object := &setting{kind: objectSetting, at: at, fields: make(map[string]*field)}
	for _, name := range slices.Sorted(maps.Keys(body.Attributes)) {
		attr := body.Attributes[name]
		evaluated := &setting{kind: brokenSetting, at: attr.Expr.Range()}
		if value, ok := d.eval(attr.Expr); ok {
			evaluated = newSetting(value, attr.Expr, attr.Expr.Range())
		}
		object.fields[name] = &field{name: attr.NameRange, setting: evaluated}
	}
	for _, block := range body.Blocks {
		if len(block.Labels) > 0 {
			d.mistake(block.LabelRanges[0], "Label in settings", "Blocks in settings have no labels. Remove it.")
		}
		inner := d.settingBody(block.Body, block.DefRange())
		first := object.fields[block.Type]
		switch {
		case first == nil:
			object.fields[block.Type] = &field{
				name:    block.TypeRange,
				setting: &setting{kind: blocksSetting, at: block.DefRange(), elements: []*setting{inner}},
			}
		case first.kind == blocksSetting:
			first.elements = append(first.elements, inner)
		default:
			d.mistake(block.TypeRange, "Argument and block of one name", "%q is also an argument, at %s. Keep one of them.",
				block.Type, diag.Place(first.name))
		}
	}
	return object
}

// newSetting splits a value into its parts. A part that is written out in the
// expression gets its own place; other parts get the place of the whole.
func newSetting(value cty.Value, expr hcl.Expression, at hcl.Range) *setting {
	s := &setting{kind: scalarSetting, at: at, expr: expr, value: value}
	t := value.Type()
	switch {
	case value.IsNull():
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		s.kind = listSetting
		parts, _ := hcl.ExprList(expr)
		for i, v := range value.AsValueSlice() {
			partExpr, partAt := expr, at
			if i < len(parts) {
				partExpr, partAt = parts[i], parts[i].Range()
			}
			s.elements = append(s.elements, newSetting(v, partExpr, partAt))
		}
	case t.IsObjectType() || t.IsMapType():
		s.kind = objectSetting
		s.fields = make(map[string]*field)
		parts := writtenParts(expr)
		for name, v := range value.AsValueMap() {
			partExpr, partAt, nameAt := expr, at, at
			if part, ok := parts[name]; ok {
				partExpr, partAt, nameAt = part.Value, part.Value.Range(), part.Key.Range()
			}
			s.fields[name] = &field{name: nameAt, setting: newSetting(v, partExpr, partAt)}
		}
	}
	return s
}

// writtenParts returns the parts of an object that is written out, by their names.
// Parts whose names are not constant are left out.
func writtenParts(expr hcl.Expression) map[string]hcl.KeyValuePair {
	pairs, _ := hcl.ExprMap(expr)
	parts := make(map[string]hcl.KeyValuePair, len(pairs))
	for _, p := range pairs {
		key, diags := p.Key.Value(nil)
		if !diags.HasErrors() && key.IsKnown() && !key.IsNull() && key.Type() == cty.String {
			parts[key.AsString()] = p
		}
	}
	return parts
}
