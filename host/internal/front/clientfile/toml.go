package clientfile

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// TOML returns an edit that makes text the table [parent.name] of the file. The text begins
// with that header. Tables below the table are removed: they belong to the old entry.
func TOML(parent, name, text string) Edit {
	return func(old []byte) ([]byte, error) {
		body, mark := bytes.CutPrefix(old, []byte(bom))
		before, err := parseTOML(body)
		if err != nil {
			return nil, err
		}
		entry, err := parseTOML([]byte(text))
		if err != nil {
			return nil, err
		}
		tables, _ := entry[parent].(map[string]any)
		want := tables[name]
		expected, same, err := assign(before, []string{parent, name}, want)
		if err != nil {
			return nil, err
		}
		if same {
			return old, nil
		}
		result := replaceTable(body, parent+"."+name, text)
		after, err := parseTOML(result)
		if err != nil || !reflect.DeepEqual(any(after), expected) {
			return nil, fmt.Errorf("[%s.%s] cannot be set without a change to other settings: write each server as a table of its own", parent, name)
		}
		if mark {
			result = append([]byte(bom), result...)
		}
		return result, nil
	}
}

func parseTOML(body []byte) (map[string]any, error) {
	v := map[string]any{}
	err := toml.Unmarshal(body, &v)
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, column := at.Position()
		return nil, fmt.Errorf("line %d, column %d: %w", row, column, err)
	}
	return v, err
}

// replaceTable replaces the lines of a table and of the tables below it, or adds the table at
// the end. Comments before the next table stay. It does not see multi-line strings: the
// caller compares what the result means.
func replaceTable(body []byte, table, text string) []byte {
	var kept, held strings.Builder
	inside, written := false, false
	for line := range strings.Lines(string(body)) {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "[") {
			was := inside
			inside = isTable(trimmed, table)
			if was && !inside {
				kept.WriteString(held.String())
			}
			held.Reset()
			if inside && !written {
				kept.Write(withEnds(body, []byte(text+"\n")))
				written = true
			}
		}
		switch {
		case !inside:
			kept.WriteString(line)
		case trimmed == "" || trimmed[0] == '#':
			held.WriteString(line)
		default:
			held.Reset()
		}
	}
	if inside {
		kept.WriteString(held.String())
	}
	if written {
		return []byte(kept.String())
	}
	lead := ""
	if len(bytes.TrimSpace(body)) > 0 {
		lead = "\n"
		if !bytes.HasSuffix(body, []byte("\n")) {
			lead = "\n\n"
		}
	}
	return append(bytes.Clone(body), withEnds(body, []byte(lead+text+"\n"))...)
}

// isTable reports whether a line is the header of a table or of one below it.
func isTable(line, table string) bool {
	header, _, ok := strings.Cut(strings.TrimPrefix(line, "["), "]")
	if !ok {
		return false
	}
	header = strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "").Replace(header)
	return header == table || strings.HasPrefix(header, table+".")
}
