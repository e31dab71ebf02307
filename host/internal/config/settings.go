package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// settings are the settings of one plugin, to be checked against its schema. They do
// not change, so several goroutines may use them.
type settings struct {
	root    *setting
	files   map[string]*hcl.File
	secrets *secrets
}

// settings reads the config block of a plugin. It evaluates the expressions, so that
// their mistakes are reported with all others. The schema checks the types later.
func (d *decoder) settings(block pluginBlock) *settings {
	everywhere := d.ctx
	defer func() { d.ctx = everywhere }()
	d.ctx = everywhere.NewChild()
	d.ctx.Functions = maps.Clone(everywhere.Functions)
	d.ctx.Functions["secret"] = d.secretFunction()
	s := &settings{
		root:    &setting{at: block.Range, kind: objectSetting},
		files:   d.files,
		secrets: d.secrets,
	}
	for _, config := range block.Config {
		if body, ok := config.Body.(*hclsyntax.Body); ok { // the parser returns no other type
			s.root = d.settingBody(body, config.Range)
		}
	}
	return s
}

// checkSettings checks a plugin's settings while the configuration is loaded, if the
// schema is known.
func (d *decoder) checkSettings(stateDir string, p supervisor.Plugin, s *settings) {
	if d.opts.SettingsSchema == nil {
		return
	}
	schema, known := d.opts.SettingsSchema(stateDir, p)
	if !known {
		return
	}
	_, mistakes, err := s.check(schema)
	if err != nil {
		d.mistake(s.root.at, "Unusable settings schema", "The settings of plugin %q cannot be checked: %v.", p.Name, err)
	}
	d.mistakes = append(d.mistakes, mistakes...)
}

// evaluate implements [supervisor.Plugin.Settings]. It checks the settings against the
// schema that the plugin publishes, and returns them as a JSON object with the
// defaults of the schema. If the settings have mistakes, the error is an [*Error].
func (s *settings) evaluate(schema []byte) ([]byte, error) {
	value, mistakes, err := s.check(schema)
	if err != nil {
		return nil, err
	}
	if err := newError(mistakes, s.files, s.secrets); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// check returns the value of the settings, which is valid only if there are no
// mistakes. It returns an error if the schema is invalid.
func (s *settings) check(schema []byte) (map[string]any, hcl.Diagnostics, error) {
	parsed, err := parseSettingSchema(schema)
	if err != nil {
		return nil, nil, err
	}
	c := &settingCheck{}
	if parsed == nil {
		if len(s.root.fields) > 0 {
			c.mistake(s.root.at, "Unexpected settings", "This plugin has no settings. Remove the config block.")
		}
		return map[string]any{}, c.mistakes, nil
	}
	return c.object(parsed, s.root), c.mistakes, nil
}

// locate implements [supervisor.Plugin.Locate]. It returns the place of a path into the
// settings, or the nearest place around it.
func (s *settings) locate(path []string) string {
	at, current := s.root.at, s.root
	for _, step := range path {
		i, err := strconv.Atoi(step)
		isElement := err == nil && i >= 0 && i < len(current.elements)
		if current.kind == blocksSetting && !isElement {
			current = current.elements[0] // a single block is an object
		}
		if f := current.fields[step]; f != nil {
			at, current = f.name, f.setting
		} else if isElement {
			current = current.elements[i]
			at = current.at
		} else {
			break
		}
	}
	return diag.Place(at)
}

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
