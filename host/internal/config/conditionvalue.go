package config

import (
	"encoding/json"
	"net/url"
	"path/filepath"

	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// ctyOf converts what JSON decodes to. What nobody can write in JSON is null.
func ctyOf(value any) cty.Value {
	switch value := value.(type) {
	case string:
		return cty.StringVal(value)
	case bool:
		return cty.BoolVal(value)
	case json.Number:
		if number, err := cty.ParseNumberVal(value.String()); err == nil {
			return number
		}
	case float64:
		return cty.NumberFloatVal(value)
	case []any:
		elements := make([]cty.Value, len(value))
		for i, element := range value {
			elements[i] = ctyOf(element)
		}
		return cty.TupleVal(elements)
	case map[string]any:
		properties := make(map[string]cty.Value, len(value))
		for name, property := range value {
			properties[name] = ctyOf(property)
		}
		return cty.ObjectVal(properties)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}

// texts is a list of strings.
func texts(all []string) cty.Value {
	if len(all) == 0 {
		return cty.ListValEmpty(cty.String)
	}
	values := make([]cty.Value, len(all))
	for i, text := range all {
		values[i] = cty.StringVal(text)
	}
	return cty.ListVal(values)
}

// row holds the texts of a path, a command or an address by their names.
type row map[string]string

// pathRows describes paths: rel is relative to the first folder if it lies there.
func pathRows(paths []policy.Path, folders []string) []row {
	rows := make([]row, 0, len(paths))
	for _, p := range paths {
		rel := p.Absolute
		if len(folders) > 0 && policy.Within(p.Absolute, folders[0]) {
			rel, _ = filepath.Rel(folders[0], p.Absolute) // both are absolute
		}
		rows = append(rows, row{"name": p.Name, "path": p.Absolute, "rel": rel, "base": filepath.Base(p.Absolute)})
	}
	return rows
}

// commandRows describes commands, but for their lists.
func commandRows(commands []policy.Command) []row {
	var rows []row
	for _, c := range commands {
		for _, s := range c.Line.Segments {
			rows = append(rows, row{"name": s.Name, "risk": s.Risk.String(), "why": s.Why})
		}
	}
	return rows
}

// urlRows describes addresses.
func urlRows(urls []string) []row {
	rows := make([]row, 0, len(urls))
	for _, text := range urls {
		scheme, host, port := "", policy.HostOf(text), ""
		if parsed, err := url.Parse(text); err == nil {
			scheme, port = parsed.Scheme, parsed.Port()
		}
		rows = append(rows, row{"url": text, "scheme": scheme, "host": host, "port": port})
	}
	return rows
}

// rowValues converts rows.
func rowValues(rows []row) []map[string]cty.Value {
	all := make([]map[string]cty.Value, len(rows))
	for i, r := range rows {
		all[i] = make(map[string]cty.Value, len(r))
		for name, text := range r {
			all[i][name] = cty.StringVal(text)
		}
	}
	return all
}

// commandValues converts commands with their lists, of which rows has the texts.
func commandValues(rows []row, commands []policy.Command) []map[string]cty.Value {
	all := rowValues(rows)
	i := 0
	for _, c := range commands {
		for _, s := range c.Line.Segments {
			all[i]["argv"], all[i]["files"] = texts(s.Argv), texts(s.Files)
			i++
		}
	}
	return all
}

// objects is a list of objects.
func objects(all []map[string]cty.Value) cty.Value {
	values := make([]cty.Value, len(all))
	for i, properties := range all {
		values[i] = cty.ObjectVal(properties)
	}
	return cty.TupleVal(values)
}
