package config_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// loadPlugin returns the one plugin of a configuration whose config block
// holds the given lines.
func loadPlugin(t *testing.T, lines string) supervisor.Plugin {
	t.Helper()
	dir := write(t, map[string]string{"config.hcl": "workspace = \".\"\nplugin \"p\" {\n  tier = \"read_only\"\n  config {\n" + lines + "\n  }\n}\n"})
	cfg, err := config.Load(dir, config.LoadOptions{LookupEnv: environment(map[string]string{"DEPTH": "7", "HIDDEN": "true"})})
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Plugins[0].Supervisor
}

func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		name, lines, want string
	}{
		{"nothing gives the defaults", ``, `{"max_read":1048576,"mode":"text"}`},
		{"a size becomes bytes", `max_read = "64KiB"`, `{"max_read":65536,"mode":"text"}`},
		{"a duration becomes nanoseconds", `patience = "1500ms"`, `{"max_read":1048576,"mode":"text","patience":1500000000}`},
		{"null is not set", `max_read = null`, `{"max_read":1048576,"mode":"text"}`},
		{
			"scalars", "mode = \"binary\"\nhidden = false\ndepth = 64\nratio = 0.1",
			`{"depth":64,"hidden":false,"max_read":1048576,"mode":"binary","ratio":0.1}`,
		},
		{"whole number for a number", `ratio = 3`, `{"max_read":1048576,"mode":"text","ratio":3}`},
		{
			"strings of the environment spell numbers and booleans", "depth = env(\"DEPTH\")\nhidden = env(\"HIDDEN\")",
			`{"depth":7,"hidden":true,"max_read":1048576,"mode":"text"}`,
		},
		{"a list", `skip = ["a", upper("b")]`, `{"max_read":1048576,"mode":"text","skip":["a","B"]}`},
		{"a computed list", `skip = [for s in ["a", "b"] : "${s}!"]`, `{"max_read":1048576,"mode":"text","skip":["a!","b!"]}`},
		{"an object of anything", `labels = { a = "b", "c d" = "e" }`, `{"labels":{"a":"b","c d":"e"},"max_read":1048576,"mode":"text"}`},
		{
			"an object as a block", "cache {\n dir = \"x\"\n size = \"1KiB\"\n }",
			`{"cache":{"dir":"x","size":1024},"max_read":1048576,"mode":"text"}`,
		},
		{
			"an object as an argument", `cache = { dir = "x", size = "1KiB" }`,
			`{"cache":{"dir":"x","size":1024},"max_read":1048576,"mode":"text"}`,
		},
		{
			"a list as blocks", "root {\n path = \"x\"\n }\nroot {\n path = \"y\"\n writable = true\n }",
			`{"max_read":1048576,"mode":"text","root":[{"path":"x"},{"path":"y","writable":true}]}`,
		},
		{
			"one block of a list", "root {\n path = \"x\"\n }",
			`{"max_read":1048576,"mode":"text","root":[{"path":"x"}]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := loadPlugin(t, tt.lines).Settings([]byte(settingsSchema))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("Settings of %s (-want +got):\n%s", tt.lines, diff)
			}
		})
	}
}

func TestSettingsOfOtherSchemas(t *testing.T) {
	for _, tt := range []struct {
		name, schema, lines string
		want, wantErr       string
	}{
		{"no schema, no settings", ``, ``, `{}`, ""},
		{"no schema but settings", ``, `a = 1`, "", "config.hcl:4: Unexpected settings: This plugin has no settings"},
		{"a schema without properties takes anything", `{"type":"object"}`, `a = [1, { b = null }]`, `{"a":[1,{"b":null}]}`, ""},
		{"nothing said of others means none", `{"type":"object","properties":{"a":{}}}`, `b = 1`, "", `There is no setting "b" here. Expected one of "a".`},
		{"patterns are left to the plugin", `{"type":"object","properties":{"a":{}},"patternProperties":{"^b":{}}}`, `b = 1`, `{"b":1}`, ""},
		{"no properties at all", `{"type":"object","additionalProperties":false}`, `b = 1`, "", `There is no setting "b" here.`},
		{"null where it may be", `{"properties":{"a":{"type":["string","null"]}}}`, `a = null`, `{"a":null}`, ""},
		{"required", `{"properties":{"a":{"type":"integer"}},"required":["a","b"]}`, ``, "", `2 mistakes; first`},
		{"enum of numbers", `{"properties":{"a":{"type":"integer","enum":[1,2]}}}`, `a = 2`, `{"a":2}`, ""},
		{"not in an enum of numbers", `{"properties":{"a":{"type":"integer","enum":[1,2]}}}`, `a = 3`, "", `for "a". Expected one of 1, 2.`},
		{"beyond 64 bits", `{"properties":{"a":{"type":"integer"}}}`, `a = 9223372036854775808`, "", `Expected a whole number of at most 64 bits for "a"`},
		{"the largest integer", `{"properties":{"a":{"type":"integer"}}}`, `a = 9223372036854775807`, `{"a":9223372036854775807}`, ""},
		{"a number that no reader can hold", `{"properties":{"a":{"type":"number"}}}`, `a = 1e999`, "", `The number for "a" is too large.`},
		{"not JSON", `{`, ``, "", "is not a JSON Schema"},
		{"not an object", `{"type":"string"}`, ``, "", "does not describe an object"},
		{"nothing fits", `false`, ``, "", "does not describe an object"},
		{"an unknown unit", `{"properties":{"a":{"type":"integer","x-unit":"miles"}}}`, `a = 1`, "", `unknown x-unit "miles"`},
		{"a large schema", `{"description":"` + strings.Repeat("x", 1<<20) + `"}`, ``, "", "more than 262144"},
		{"a deep schema", strings.Repeat(`{"items":`, 100) + `{}` + strings.Repeat(`}`, 100), ``, "", "more than 64 deep"},
		{"names that command a terminal", `{"properties":{"\u001b[2J":{}}}`, `a = 1`, "", `Expected one of "\x1b[2J".`},
		{"values that command a terminal", `{"properties":{"a":{"enum":["\u001b[2J",7]}}}`, `a = 1`, "", `Expected one of "\u001b[2J", 7.`},
		{"a null property", `{"properties":{"a":null}}`, `a = 1`, "", `property "a" is null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := loadPlugin(t, tt.lines).Settings([]byte(tt.schema))
			if tt.wantErr == "" && err != nil {
				t.Fatal(err)
			}
			if tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Fatalf("Settings(%s) of %s: error %v, want one with %q", tt.schema, tt.lines, err, tt.wantErr)
			}
			if string(got) != tt.want {
				t.Errorf("Settings(%s) of %s = %s, want %s", tt.schema, tt.lines, got, tt.want)
			}
		})
	}
}

// TestSettingsMistakesLikeOthers: mistakes that Settings reports later have the same form as
// those of Load.
func TestSettingsMistakesLikeOthers(t *testing.T) {
	_, err := loadPlugin(t, "    max_raed = \"1MiB\"\n    depth = 0").Settings([]byte(settingsSchema))
	var bad *config.Error
	if !errors.As(err, &bad) {
		t.Fatalf("Settings error = %v, want *config.Error", err)
	}
	type short struct {
		Line, Column, Width int
		Summary, Source     string
	}
	var got []short
	for _, m := range bad.Mistakes {
		got = append(got, short{m.Line, m.Column, m.Width, m.Summary, m.Source})
	}
	want := []short{
		{5, 5, 8, "Unknown setting", `    max_raed = "1MiB"`},
		{6, 13, 1, "Out of range", `    depth = 0`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mistakes (-want +got):\n%s", diff)
	}
}

func TestLocate(t *testing.T) {
	p := loadPlugin(t, strings.Join([]string{
		`max_read = "1MiB"`, // line 5
		`cache {`,
		`  dir = "a"`, // 7
		`}`,
		`root {`,
		`  path = "a"`, // 10
		`}`,
		`root {`, // 12
		`  path = "b"`,
		`}`,
		`skip = [`,
		`  "a",`,
		`  "b",`, // 17
		`]`,
		`labels = {`,
		`  a = "b"`, // 20
		`}`,
	}, "\n"))
	for _, tt := range []struct {
		path string // joined with /
		line string
	}{
		{"", "4"},
		{"unknown/deeper", "4"},
		{"max_read", "5"},
		{"max_read/deeper", "5"},
		{"cache", "6"},
		{"cache/dir", "7"},
		{"cache/size", "6"},
		{"root/0/path", "10"},
		{"root/1", "12"},
		{"root/1/path", "13"},
		{"root/2/path", "9"},
		{"root/-1", "9"},
		{"skip/1", "17"},
		{"skip/x", "15"},
		{"labels/a", "20"},
	} {
		var path []string
		if tt.path != "" {
			path = strings.Split(tt.path, "/")
		}
		if got, want := p.Locate(path), "config.hcl:"+tt.line; !strings.HasSuffix(got, want) {
			t.Errorf("Locate(%q) = %s, want %s", path, got, want)
		}
	}
}

func TestErrorAsJSON(t *testing.T) {
	_, err := config.Load(write(t, map[string]string{"a.hcl": "workspace = 5\n"}), config.LoadOptions{LookupEnv: environment(nil)})
	var bad *config.Error
	if !errors.As(err, &bad) {
		t.Fatalf("Load error = %v, want *config.Error", err)
	}
	bad.Mistakes[0].File = "a.hcl"
	got, err := json.Marshal(bad)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"mistakes":[{"file":"a.hcl","line":1,"column":13,"summary":"Wrong type",` +
		`"detail":"Expected the path of a directory for workspace, not a number.","source":"workspace = 5","width":1}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}
