package config

import (
	"maps"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// setting is an evaluated piece of a plugin's config block, with its place. It
// is a scalar, a list or an object; nothing but the plugin's schema can tell
// whether it is right.
type setting struct {
	at hcl.Range
	// expr is what was evaluated; nil for a block.
	expr hcl.Expression
	// value is a string, a number, a bool or null if the setting is a scalar.
	value cty.Value
	// fields are those of an object, elements those of a list.
	fields   map[string]*field
	elements []*setting
	kind     settingKind
}

type settingKind int

const (
	scalarSetting settingKind = iota
	listSetting
	objectSetting
	// blocksSetting is one or more blocks of one type: an object if the schema
	// wants one, else a list of objects.
	blocksSetting
	// brokenSetting has no value; why has been reported.
	brokenSetting
)

// field is a named setting of an object.
type field struct {
	name hcl.Range
	*setting
}

// settings reads the config block of a plugin. Expressions are evaluated now,
// so that their mistakes are told with all others; the types wait for the
// schema.
func (d *decoder) settings(block pluginBlock) *settings {
	s := &settings{
		files:   d.files,
		secrets: d.secrets,
		root:    &setting{at: block.Range, kind: objectSetting},
	}
	if block.Config == nil {
		return s
	}
	body, ok := block.Config.Body.(*hclsyntax.Body)
	if !ok {
		return s // the parser makes no other
	}
	s.root = d.settingBody(body, block.Config.Range)
	return s
}

// settingBody reads the inside of a block.
func (d *decoder) settingBody(body *hclsyntax.Body, at hcl.Range) *setting {
	object := &setting{at: at, kind: objectSetting, fields: make(map[string]*field)}
	for _, name := range slices.Sorted(maps.Keys(body.Attributes)) {
		attr := body.Attributes[name]
		value, diags := attr.Expr.Value(d.ctx)
		d.mistakes = append(d.mistakes, diags...)
		evaluated := &setting{at: attr.Expr.Range(), kind: brokenSetting}
		if !diags.HasErrors() && value.IsWhollyKnown() {
			evaluated = newSetting(value, attr.Expr, attr.Expr.Range())
		}
		object.fields[name] = &field{name: attr.NameRange, setting: evaluated}
	}
	for _, block := range body.Blocks {
		if len(block.Labels) > 0 {
			d.mistake(block.LabelRanges[0], "Label in settings", "A block of settings has no label. Remove it.")
		}
		inner := d.settingBody(block.Body, block.DefRange())
		first := object.fields[block.Type]
		switch {
		case first == nil:
			object.fields[block.Type] = &field{
				name:    block.TypeRange,
				setting: &setting{at: block.DefRange(), kind: blocksSetting, elements: []*setting{inner}},
			}
		case first.kind != blocksSetting:
			d.mistake(block.TypeRange, "Argument and block of one name", "%q is set as an argument at %s already. Keep one of them.",
				block.Type, place(first.name))
		default:
			first.elements = append(first.elements, inner)
		}
	}
	return object
}

// newSetting takes a value apart. Where the expression spells out the parts,
// each gets its own place.
func newSetting(value cty.Value, expr hcl.Expression, at hcl.Range) *setting {
	s := &setting{at: at, expr: expr, value: value}
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

// writtenParts are the parts of an object that is written out, by those names
// that are constant.
func writtenParts(expr hcl.Expression) map[string]hcl.KeyValuePair {
	pairs, _ := hcl.ExprMap(expr)
	parts := make(map[string]hcl.KeyValuePair, len(pairs))
	for _, p := range pairs {
		if key, diags := p.Key.Value(nil); !diags.HasErrors() && key.Type() == cty.String && key.IsWhollyKnown() && !key.IsNull() {
			parts[key.AsString()] = p
		}
	}
	return parts
}

// locate returns the place that a path into the settings leads to, or the
// nearest one around it.
func (s *settings) locate(path []string) string {
	at, current := s.root.at, s.root
	for _, step := range path {
		if current.kind == blocksSetting && !isIndex(step, len(current.elements)) {
			current = current.elements[0]
		}
		if f := current.fields[step]; f != nil {
			at, current = f.name, f.setting
			continue
		}
		if !isIndex(step, len(current.elements)) {
			break
		}
		i, _ := strconv.Atoi(step)
		current = current.elements[i]
		at = current.at
	}
	return place(at)
}

func isIndex(step string, length int) bool {
	i, err := strconv.Atoi(step)
	return err == nil && i >= 0 && i < length
}
