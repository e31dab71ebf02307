package lock

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// version is the version of the format.
const version = "1"

// maxPackage bounds what a plugin was installed from, in bytes.
const maxPackage = 64 * tool.KiB

// parse reads the text of a lock file. The error names the place in the file.
func parse(text []byte) (Lock, error) {
	value, err := schema.ReadText(text, 0)
	if err != nil {
		return Lock{}, err
	}
	top, err := object("the file", value, "version", "plugins")
	if err != nil {
		return Lock{}, err
	}
	if number, ok := top["version"].(json.Number); !ok || number.String() != version {
		return Lock{}, fmt.Errorf("version: expected %s; a newer toolhost may have written the file", version)
	}
	plugins, err := object("plugins", top["plugins"])
	if err != nil {
		return Lock{}, err
	}
	l := Lock{Plugins: map[string]Plugin{}}
	for _, p := range sorted(plugins) {
		if !tool.ValidPluginName(p.name) {
			return Lock{}, fmt.Errorf("plugins: %s is not the name of a plugin", tool.VisibleName(schema.Shorten(p.name)))
		}
		plugin, err := readPlugin("plugins."+p.name, p.value)
		if err != nil {
			return Lock{}, err
		}
		l.put(p.name, plugin)
	}
	return l, nil
}

func readPlugin(place string, value any) (Plugin, error) {
	members, err := object(place, value, "tools", "package")
	if err != nil {
		return Plugin{}, err
	}
	var p Plugin
	if from, ok := members["package"]; ok {
		if p.Package = schema.Canonical(from); len(p.Package) > int(maxPackage) {
			return Plugin{}, fmt.Errorf("%s.package: %d bytes, more than the %v that are allowed", place, len(p.Package), maxPackage)
		}
	}
	if members["tools"] == nil {
		return p, nil
	}
	tools, err := object(place+".tools", members["tools"])
	if err != nil {
		return Plugin{}, err
	}
	p.Tools = make(map[string]Definition, len(tools))
	for _, t := range sorted(tools) {
		if !tool.ValidName(t.name) {
			return Plugin{}, fmt.Errorf("%s.tools: %s is not the name of a tool", place, tool.VisibleName(schema.Shorten(t.name)))
		}
		at := place + ".tools." + t.name
		entry, err := object(at, t.value, "sha256", "definition")
		if err != nil {
			return Plugin{}, err
		}
		sum, _ := entry["sha256"].(string)
		if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 || strings.ToLower(sum) != sum {
			return Plugin{}, fmt.Errorf("%s.sha256: expected 64 hexadecimal digits in lower case", at)
		}
		d, err := readDefinition(t.name, sum, entry["definition"])
		if err != nil {
			return Plugin{}, fmt.Errorf("%s.%w", at, err)
		}
		p.Tools[t.name] = d
	}
	return p, nil
}

// object returns a value as an object that has no other names than those; without names, any.
func object(place string, value any, names ...string) (map[string]any, error) {
	members, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: expected an object", place)
	}
	for _, m := range sorted(members) {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			return nil, fmt.Errorf("%s: unknown key %s, expected %s", place, tool.VisibleName(schema.Shorten(m.name)), strings.Join(names, " or "))
		}
	}
	return members, nil
}

// format returns the text of a lock file: indented, sorted, and with escapes for characters that a
// person would not see.
func (l Lock) format() ([]byte, error) {
	plugins := map[string]any{}
	for name, p := range l.Plugins {
		members := map[string]any{}
		if p.Package != nil {
			members["package"] = p.Package
		}
		if p.Tools != nil {
			tools := map[string]any{}
			for tool, d := range p.Tools {
				tools[tool] = struct {
					SHA256     string          `json:"sha256"`
					Definition json.RawMessage `json:"definition"`
				}{strings.TrimPrefix(d.Digest(), digestPrefix), d.JSON()}
			}
			members["tools"] = tools
		}
		plugins[name] = members
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(struct {
		Version json.RawMessage `json:"version"`
		Plugins map[string]any  `json:"plugins"`
	}{json.RawMessage(version), plugins})
	return escape(text.Bytes()), err
}

// escape writes invisible characters of JSON as escapes.
func escape(text []byte) []byte {
	if tool.Visible(string(text)) == string(text) {
		return text
	}
	var b strings.Builder
	for _, char := range string(text) {
		if one := string(char); tool.Visible(one) == one {
			b.WriteString(one)
		} else if char <= 0xffff {
			fmt.Fprintf(&b, `\u%04x`, char)
		} else {
			high, low := utf16.EncodeRune(char)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return []byte(b.String())
}
