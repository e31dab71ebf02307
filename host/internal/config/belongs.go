package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// belongs returns a sentence that says in which blocks an argument or block belongs, or "" if
// none has this name.
func belongs(name string) string {
	places := homes(reflect.TypeFor[rootBlock](), "", name)
	slices.Sort(places)
	places = slices.Compact(places)
	const most = 3 // that a person reads
	if len(places) == 0 || len(places) > most {
		return ""
	}
	return fmt.Sprintf(" It belongs %s.", strings.Join(places, " or "))
}

// homes returns the places of a name in a block and the blocks in it.
func homes(block reflect.Type, path, name string) (places []string) {
	if block == reflect.TypeFor[sandboxBlock]() || block == reflect.TypeFor[inlineSandboxBlock]() {
		block = reflect.TypeFor[sandboxArguments]()
	}
	for field := range block.Fields() {
		own, kind, _ := strings.Cut(field.Tag.Get("hcl"), ",")
		switch {
		case own == "" || kind == "label" || kind == "label_range":
			continue
		case own == name && path == "":
			places = append(places, "outside of all blocks")
		case own == name:
			places = append(places, "in a "+path)
		}
		if kind == "block" {
			inner := own + " block"
			if path != "" {
				inner += " of a " + path
			}
			places = append(places, homes(field.Type.Elem(), inner, name)...)
		}
	}
	return places
}
