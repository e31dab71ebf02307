package clientfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/tailscale/hujson"
)

// Remove plans to take servers out of the lists of a client in a place. It returns a change of each
// file that has one of them, and writes nothing.
func Remove(client string, p Place, names []string) (changes []*Change, err error) {
	places, err := listsOf(client, p)
	if err != nil {
		return nil, err
	}
	edits := map[string][]Edit{}
	for _, place := range places {
		found, err := serversIn(place)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if slices.Contains(names, s.Name) {
				edits[place.file] = append(edits[place.file], without(place, s.Name))
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(edits)) {
		change, err := Plan(file, private, func(text []byte) (_ []byte, err error) {
			for _, edit := range edits[file] {
				if text, err = edit(text); err != nil {
					return nil, err
				}
			}
			return text, nil
		})
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// without returns an edit that takes one server out of a list.
func without(place listPlace, name string) Edit {
	if filepath.Ext(place.file) == ".toml" {
		return withoutTable(place.path[0], name)
	}
	return withoutMember(append(slices.Clone(place.path), name))
}

// withoutMember returns an edit that takes the member at a path out of JSON.
func withoutMember(path []string) Edit {
	return func(old []byte) ([]byte, error) {
		body, mark := bytes.CutPrefix(old, []byte(bom))
		before, root, err := parseJSON(append(bytes.Clone(body), '\n')) // the parser wants an end of a last comment
		if err != nil {
			return nil, err
		}
		expected, err := copyWithout(before, path)
		if err != nil {
			return nil, err
		}
		text, err := cutMember(body, root, path)
		if err != nil {
			return nil, err
		}
		after, _, err := parseJSON(append(bytes.Clone(text), '\n'))
		if err != nil || !reflect.DeepEqual(after, expected) {
			return nil, errors.New("the change would alter other settings, perhaps because a name occurs twice")
		}
		if mark {
			text = append([]byte(bom), text...)
		}
		return text, nil
	}
}

// cutMember returns the text without the member at a path and one comma. Comments before it, which may
// be of the member above, stay.
func cutMember(body []byte, at *hujson.Value, path []string) ([]byte, error) {
	object, ok := at.Value.(*hujson.Object)
	if !ok {
		return nil, fs.ErrNotExist
	}
	member := last(object, path[0])
	if member == nil {
		return nil, fs.ErrNotExist
	}
	if len(path) > 1 {
		return cutMember(body, &member.Value, path[1:])
	}
	i := slices.IndexFunc(object.Members, func(m hujson.ObjectMember) bool { return m.Name.StartOffset == member.Name.StartOffset })
	switch n := len(object.Members); {
	case n == 1:
		return cut(body, at.StartOffset+1, at.EndOffset-1, nil), nil
	case i < n-1:
		return cut(body, member.Name.StartOffset, object.Members[i+1].Name.StartOffset, nil), nil
	}
	above := object.Members[i-1].Value.EndOffset
	between := bytes.TrimRight(body[above:member.Name.StartOffset], " \t\r\n")
	return cut(body, above, member.Value.EndOffset, bytes.TrimPrefix(between, []byte(","))), nil
}

// copyWithout returns a copy of a decoded value without the member at a path.
func copyWithout(root any, path []string) (any, error) {
	text, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	inner := v
	for _, name := range path[:len(path)-1] {
		object, ok := inner.(map[string]any)
		if !ok {
			return nil, fs.ErrNotExist
		}
		inner = object[name]
	}
	object, ok := inner.(map[string]any)
	if !ok {
		return nil, fs.ErrNotExist
	}
	delete(object, path[len(path)-1])
	return v, nil
}

// withoutTable returns an edit that takes the table [parent.name] out of TOML.
func withoutTable(parent, name string) Edit {
	return func(old []byte) ([]byte, error) {
		body, mark := bytes.CutPrefix(old, []byte(bom))
		expected, err := parseTOML(body)
		if err != nil {
			return nil, err
		}
		tables, _ := expected[parent].(map[string]any)
		if delete(tables, name); len(tables) == 0 {
			delete(expected, parent)
		}
		text := replaceTable(body, parent+"."+name, "")
		after, err := parseTOML(text)
		if err != nil || !reflect.DeepEqual(after, expected) {
			return nil, fmt.Errorf("[%s.%s] cannot be removed without a change to other settings: write each server as a table of its own", parent, name)
		}
		if mark {
			text = append([]byte(bom), text...)
		}
		return text, nil
	}
}
