package condition

import (
	"encoding/json"
	"net/url"
	"path/filepath"

	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
)

// variable converts the part of a call that a variable of [names] describes. It does not convert
// args.
func variable(in *policy.Input, name string) cty.Value {
	switch name {
	case "tool":
		return object("name", in.Tool, "plugin", in.Plugin, "tier", in.Tier.String())
	case "caller":
		caller := properties("user", in.Caller.User, "client", in.Caller.Client)
		caller["roles"], caller["groups"] = texts(in.Caller.Roles), texts(in.Caller.Groups)
		return cty.ObjectVal(caller)
	case "session":
		return cty.StringVal(in.Caller.Session)
	case "paths":
		return cty.TupleVal(paths(in))
	case "commands":
		return cty.TupleVal(commands(in))
	case "urls":
		return cty.TupleVal(urls(in))
	}
	return cty.DynamicVal // there is no other variable: see names
}

// paths converts the paths of a call. rel is relative to the first folder if the
// path is in it.
func paths(in *policy.Input) []cty.Value {
	all := make([]cty.Value, 0, len(in.Paths))
	for _, p := range in.Paths {
		rel := p.Absolute
		if len(in.Folders) > 0 && policy.Within(p.Absolute, in.Folders[0]) {
			rel, _ = filepath.Rel(in.Folders[0], p.Absolute) // both are absolute
		}
		all = append(all, object("name", p.Name, "path", p.Absolute, "rel", rel, "base", filepath.Base(p.Absolute)))
	}
	return all
}

// commands converts the commands of all shell commands of a call.
func commands(in *policy.Input) []cty.Value {
	var all []cty.Value
	for _, c := range in.Commands {
		for _, s := range c.Line.Segments {
			command := properties("name", s.Name, "risk", s.Risk.String(), "why", s.Why)
			command["argv"], command["files"] = texts(s.Argv), texts(s.Files)
			all = append(all, cty.ObjectVal(command))
		}
	}
	return all
}

// urls converts the addresses of a call.
func urls(in *policy.Input) []cty.Value {
	all := make([]cty.Value, 0, len(in.URLs))
	for _, text := range in.URLs {
		scheme, port := "", ""
		if parsed, err := url.Parse(text); err == nil {
			scheme, port = parsed.Scheme, parsed.Port()
		}
		all = append(all, object("url", text, "scheme", scheme, "host", policy.HostOf(text), "port", port))
	}
	return all
}

// object returns an object of names and strings in turn.
func object(pairs ...string) cty.Value { return cty.ObjectVal(properties(pairs...)) }

func properties(pairs ...string) map[string]cty.Value {
	all := make(map[string]cty.Value, len(pairs)/2+2) // room for other lists
	for i := 0; i+1 < len(pairs); i += 2 {
		all[pairs[i]] = cty.StringVal(pairs[i+1])
	}
	return all
}

// texts returns a list of strings.
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

// ctyOf converts a value that was decoded from JSON. Other values become null.
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
