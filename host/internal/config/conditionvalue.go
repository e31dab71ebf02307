package config

import (
	"encoding/json"
	"net/url"
	"path/filepath"

	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/policy"
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

// pathValues describes paths: rel is relative to the first folder if it lies there.
func pathValues(paths []policy.Path, folders []string) cty.Value {
	var objects []cty.Value
	for _, p := range paths {
		rel := p.Absolute
		if len(folders) > 0 && under(p.Absolute, folders[0]) {
			rel, _ = filepath.Rel(folders[0], p.Absolute) // both are absolute
		}
		objects = append(objects, cty.ObjectVal(map[string]cty.Value{
			"name": cty.StringVal(p.Name), "path": cty.StringVal(p.Absolute), "rel": cty.StringVal(rel), "base": cty.StringVal(filepath.Base(p.Absolute)),
		}))
	}
	return cty.TupleVal(objects)
}

func commandValues(commands []policy.Command) cty.Value {
	var objects []cty.Value
	for _, c := range commands {
		for _, s := range c.Line.Segments {
			objects = append(objects, cty.ObjectVal(map[string]cty.Value{
				"name": cty.StringVal(s.Name), "argv": texts(s.Argv), "risk": cty.StringVal(s.Risk.String()),
				"why": cty.StringVal(s.Why), "files": texts(s.Files),
			}))
		}
	}
	return cty.TupleVal(objects)
}

func urlValues(urls []string) cty.Value {
	var objects []cty.Value
	for _, text := range urls {
		scheme, host, port := "", policy.HostOf(text), ""
		if parsed, err := url.Parse(text); err == nil {
			scheme, port = parsed.Scheme, parsed.Port()
		}
		objects = append(objects, cty.ObjectVal(map[string]cty.Value{
			"url": cty.StringVal(text), "scheme": cty.StringVal(scheme), "host": cty.StringVal(host), "port": cty.StringVal(port),
		}))
	}
	return cty.TupleVal(objects)
}
