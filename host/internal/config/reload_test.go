package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestReloadTags: every field says how a reload treats a change, and is treated so.
func TestReloadTags(t *testing.T) {
	refused := 0
	var walk func(path []int, of reflect.Type)
	walk = func(path []int, of reflect.Type) {
		for field := range of.Fields() {
			at := append(slices.Clip(path), field.Index...)
			tag := field.Tag.Get(reloadTag)
			treatment, name, _ := strings.Cut(tag, " ")
			switch {
			case treatment == "fields" && field.Type.Kind() == reflect.Struct:
				walk(at, field.Type)
				continue
			case tag == "apply":
				continue
			case treatment == "restart" && name != "":
			default:
				t.Errorf("%s.%s has the tag reload:%q: say whether a reload applies a change", of.Name(), field.Name, tag)
				continue
			}
			refused++
			var old, next Config
			set(t, reflect.ValueOf(&next).Elem().FieldByIndex(at))
			err := old.CheckReload(&next)
			if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hidden value") {
				t.Errorf("CheckReload with another %s.%s: %v, want an error with %q", of.Name(), field.Name, err, name)
			}
			if err := next.CheckReload(&next); err != nil {
				t.Errorf("CheckReload with the same %s.%s: %v", of.Name(), field.Name, err)
			}
		}
	}
	walk(nil, reflect.TypeFor[Config]())
	if refused != 10 {
		t.Errorf("a reload refuses changes of %d fields, want 10: docs/configuration.md lists them", refused)
	}
	if err := new(Config).CheckReload(&Config{Grace: 1, ActionsPerHour: 2, Digest: "x", Tokens: nil, PluginDir: "y"}); err != nil {
		t.Errorf("CheckReload with other fields that a reload applies: %v", err)
	}
}

// set gives a field another value than its zero value.
func set(t *testing.T, field reflect.Value) {
	t.Helper()
	switch field.Interface().(type) {
	case string:
		field.SetString("other")
	case workspace.Dirs:
		field.Set(reflect.ValueOf(workspace.Dirs{Parent: "/srv"}))
	case []string:
		field.Set(reflect.ValueOf([]string{"hidden value"}))
	case time.Duration, tool.ByteSize:
		if field.CanInt() {
			field.SetInt(7)
		} else {
			field.SetUint(7)
		}
	default:
		t.Fatalf("no other value for a %v: add one here", field.Type())
	}
}
