package sdk

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// jsonField is a field as encoding/json sees it.
type jsonField struct {
	reflect.StructField
	name     string
	optional bool // may be missing in the JSON
	quoted   bool // ",string"
	named    bool // an embedded struct with its own name
}

func jsonFields(t reflect.Type) []jsonField {
	var fields []jsonField
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		name, rest, _ := strings.Cut(tag, ",")
		isStruct := indirect(f.Type).Kind() == reflect.Struct
		behindPointer, omitted := outside(t, f.Index)
		switch {
		case tag == "-" || omitted:
			continue
		case f.Anonymous && isStruct && name == "":
			continue // its fields follow
		case !f.IsExported() && (!f.Anonymous || !isStruct):
			continue
		}
		if name == "" {
			name = f.Name
		}
		options := strings.Split(rest, ",")
		fields = append(fields, jsonField{
			StructField: f,
			name:        name,
			optional:    behindPointer || slices.Contains(options, "omitempty") || slices.Contains(options, "omitzero"),
			quoted:      slices.Contains(options, "string"),
			named:       f.Anonymous && isStruct,
		})
	}
	return fields
}

// outside examines the embedded structs that a field of t is promoted from. A
// nil pointer to one, or the tag "-", leaves the field out of the JSON.
func outside(t reflect.Type, index []int) (behindPointer, omitted bool) {
	for _, n := range index[:len(index)-1] {
		f := indirect(t).Field(n)
		behindPointer = behindPointer || f.Type.Kind() == reflect.Pointer
		omitted = omitted || f.Tag.Get("json") == "-"
		t = f.Type
	}
	return behindPointer, omitted
}

// checkEmbedded notes an embedded pointer that encoding/json cannot set.
func (i *inferrer) checkEmbedded(t reflect.Type, path string) {
	for f := range t.Fields() {
		if f.Anonymous && !f.IsExported() && f.Type.Kind() == reflect.Pointer && f.Tag.Get("json") != "-" {
			i.mistake(path, "the embedded pointer to %s, which is not exported, cannot be filled in; embed the struct itself", f.Type.Elem())
		}
	}
}

// checkTags notes the mistakes of a field that do not depend on its type.
func (i *inferrer) checkTags(f jsonField, at string) {
	keys, ok := tagKeys(string(f.Tag))
	if !ok {
		i.mistake(at, "the struct tag `%s` cannot be read; expected key:\"value\" pairs with spaces between them", f.Tag)
		return // the tags after the mistake would be reported as missing
	}
	for _, key := range keys {
		if meant := lookAlike(key); meant != "" {
			i.mistake(at, "tag %q is not known; did you mean %q?", key, meant)
		}
	}
	description, described := f.Tag.Lookup("jsonschema")
	first, _, _ := strings.Cut(description, " ")
	switch {
	case described && (description == "" || strings.Contains(first, "=")):
		i.mistake(at, "the jsonschema tag is %q; it is the description and must not be empty or begin with \"word=\"", description)
	case !described && i.use != results:
		i.mistake(at, "has no description; say what it is for with `jsonschema:\"...\"`")
	}
	if f.named {
		i.mistake(at, "an embedded struct cannot have a JSON name; give the field a name instead")
	}
	if f.quoted {
		i.mistake(at, "the json option \"string\" is not supported")
	}
	for _, key := range keys {
		misplaced := i.use != arguments && (key == tagAlias || key == tagRaw) || i.use == results && key == tagRole
		if misplaced {
			i.mistake(at, "tag %q is for the arguments of tools only", key)
		}
	}
}

// lookAlike returns the tag of this package that the author probably meant by
// key, or "". Tags of other packages are ignored.
func lookAlike(key string) string {
	ours := []string{"json", "jsonschema", tagEnum, tagDefault, tagMin, tagMax, tagRole, tagAlias, tagRaw}
	if slices.Contains(ours, key) {
		return ""
	}
	lower := strings.ToLower(key)
	switch lower {
	case "description", "desc", "describe", "doc", "help", "usage", "jsonschema_description", "json_schema", "schema":
		return "jsonschema"
	case "values", "choices", "oneof", "one_of", "options":
		return tagEnum
	case "minimum", "minlength", "min_length", "minitems", "min_items", "least":
		return tagMin
	case "maximum", "maxlength", "max_length", "maxitems", "max_items", "most":
		return tagMax
	}
	for _, tag := range ours {
		if lower == tag || lower == tag+"s" || lower == tag+"es" {
			return tag
		}
	}
	return ""
}

// tagKeys returns the keys of a struct tag. It reports false if the tag does
// not follow the convention; then reflect finds only a part of it.
func tagKeys(tag string) (keys []string, ok bool) {
	for tag = strings.TrimLeft(tag, " "); tag != ""; tag = strings.TrimLeft(tag, " ") {
		key, rest, found := strings.Cut(tag, ":")
		if !found || key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }) {
			return keys, false
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil || quoted[0] != '"' || slices.Contains(keys, key) {
			return keys, false
		}
		keys = append(keys, key)
		tag = rest[len(quoted):]
		if tag != "" && tag[0] != ' ' {
			return keys, false
		}
	}
	return keys, true
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// list returns the names in quotes, separated by commas.
func list[S ~string](names []S) string {
	quoted := make([]string, len(names))
	for n, name := range names {
		quoted[n] = strconv.Quote(string(name))
	}
	return strings.Join(quoted, ", ")
}
