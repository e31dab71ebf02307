package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// everything is a schema with each thing that Check treats in its own way.
const everything = `{
	"type": "object",
	"properties": {
		"path":    {"type": "string", "description": "a file", "x-role": "path", "x-aliases": ["file", "filename"]},
		"limit":   {"type": "integer", "description": "how many", "minimum": 1, "maximum": 100},
		"ratio":   {"type": "number", "description": "how much"},
		"deep":    {"type": "boolean", "description": "whether"},
		"mode":    {"enum": ["text", "binary"], "description": "how"},
		"globs":   {"type": "array", "description": "which", "items": {"type": "string"}},
		"range":   {"type": "object", "description": "where", "properties": {
			"from": {"type": "integer", "description": "start", "x-aliases": ["start"]},
			"to":   {"type": "integer", "description": "end"}
		}, "required": ["from"]},
		"items":   {"type": "array", "description": "several", "items": {"$ref": "#/$defs/item"}},
		"headers": {"type": "object", "description": "any names"},
		"maybe":   {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "or nothing"},
		"token":   {"type": "string", "description": "a secret", "x-role": "secret", "pattern": "^t-"}
	},
	"required": ["path"],
	"$defs": {"item": {"type": "object", "properties": {
		"path": {"type": "string", "description": "a file"}
	}, "required": ["path"]}}
}`

func compile(tb testing.TB, text string) *schema.Schema {
	tb.Helper()
	s, err := schema.Compile([]byte(text))
	if err != nil {
		tb.Fatalf("Compile(%s): %v", text, err)
	}
	return s
}

// check reads and checks arguments as a call does.
func check(tb testing.TB, s *schema.Schema, arguments string) (string, []schema.Repair, *tool.Error) {
	tb.Helper()
	value, err := schema.Read([]byte(arguments))
	if err != nil {
		tb.Fatalf("Read(%s): %v", arguments, err)
	}
	checked, err := s.Check(value)
	return string(checked.Canonical), checked.Repairs, err
}

func TestCheckAccepts(t *testing.T) {
	s := compile(t, everything)
	for _, tt := range []struct{ name, in, want string }{
		{"sorted names", `{"path":"a","limit":5,"deep":true}`, `{"deep":true,"limit":5,"path":"a"}`},
		{"white space", " {\n\t\"path\" : \"a\" } ", `{"path":"a"}`},
		{"number text", `{"path":"a","ratio":1.505e+2}`, `{"path":"a","ratio":1.505e+2}`},
		{"a number beyond 64 bits", `{"path":"a","ratio":1e30}`, `{"path":"a","ratio":1e30}`},
		{"whole numbers", `{"path":"a","limit":1e1,"ratio":2.0}`, `{"limit":10,"path":"a","ratio":2}`},
		{"no HTML escaping", `{"path":"<a> & \u2028"}`, "{\"path\":\"<a> & \u2028\"}"},
		{"an open object", `{"path":"a","headers":{"X":1}}`, `{"headers":{"X":1},"path":"a"}`},
		{"nothing", `{"path":"a","maybe":null}`, `{"maybe":null,"path":"a"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, repairs, err := check(t, s, tt.in)
			if err != nil || got != tt.want || repairs != nil {
				t.Errorf("Check(%s) = %s, %v, %v, want %s", tt.in, got, repairs, err, tt.want)
			}
		})
	}
}

func TestCheckRepairs(t *testing.T) {
	s := compile(t, everything)
	for _, tt := range []struct {
		name, in, want string
		repairs        []schema.Repair
	}{
		{
			"a number as a string", `{"path":"a","limit":"5"}`, `{"limit":5,"path":"a"}`,
			[]schema.Repair{{"arguments.limit", "string to integer"}},
		},
		{
			"a boolean as a string", `{"path":"a","deep":"true"}`, `{"deep":true,"path":"a"}`,
			[]schema.Repair{{"arguments.deep", "string to boolean"}},
		},
		{
			"one value for an array", `{"path":"a","globs":"*.go"}`, `{"globs":["*.go"],"path":"a"}`,
			[]schema.Repair{{"arguments.globs", "one value to an array of it"}},
		},
		{
			"an object as a string", `{"path":"a","range":"{\"from\":1}"}`, `{"path":"a","range":{"from":1}}`,
			[]schema.Repair{{"arguments.range", "string to object"}},
		},
		{
			"an array as a string", `{"path":"a","globs":"[\"x\"]"}`, `{"globs":["x"],"path":"a"}`,
			[]schema.Repair{{"arguments.globs", "string to array"}},
		},
		{
			"an alias", `{"file":"a"}`, `{"path":"a"}`,
			[]schema.Repair{{"arguments.path", `given as "file"`}},
		},
		{
			"one within another", `{"path":"a","range":"{\"start\":\"3\"}"}`, `{"path":"a","range":{"from":3}}`,
			[]schema.Repair{
				{"arguments.range", "string to object"},
				{"arguments.range.from", `given as "start"`},
				{"arguments.range.from", "string to integer"},
			},
		},
		{
			"the whole as a string", `"{\"path\":\"a\"}"`, `{"path":"a"}`,
			[]schema.Repair{{"arguments", "string to object"}},
		},
		{
			"null for what is left out", `{"path":"a","limit":null,"globs":null}`, `{"path":"a"}`,
			[]schema.Repair{{"arguments.globs", "null to left out"}, {"arguments.limit", "null to left out"}},
		},
		{
			"one of two types", `{"path":"a","maybe":"7"}`, `{"maybe":7,"path":"a"}`,
			[]schema.Repair{{"arguments.maybe", "string to integer"}},
		},
		{
			"an integer for a string", `{"path":20261124}`, `{"path":"20261124"}`,
			[]schema.Repair{{"arguments.path", "integer to string"}},
		},
		{
			"an enum value in other case", `{"path":"a","mode":"TEXT"}`, `{"mode":"text","path":"a"}`,
			[]schema.Repair{{"arguments.mode", "case of an enum value"}},
		},
		{
			"one object for an array of objects", `{"path":"a","items":{"path":"b"}}`, `{"items":[{"path":"b"}],"path":"a"}`,
			[]schema.Repair{{"arguments.items", "one value to an array of it"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, repairs, err := check(t, s, tt.in)
			if err != nil {
				t.Fatalf("Check(%s): %v", tt.in, err)
			}
			if got != tt.want {
				t.Errorf("Check(%s) = %s, want %s", tt.in, got, tt.want)
			}
			if diff := cmp.Diff(tt.repairs, repairs); diff != "" {
				t.Errorf("repairs of %s (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}

// TestRepairsThatMeet checks a value which one part of the schema wants in a
// list and another with its property renamed: both cannot be done at once.
func TestNullForWhatIsRequired(t *testing.T) {
	_, _, err := check(t, compile(t, everything), `{"path":null}`)
	if err == nil || err.Message != "missing required field 'path' in arguments" {
		t.Errorf("Check = %v, want the field reported as missing", err)
	}
}

func TestRepairsThatMeet(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"a":{"description":"d","allOf":[
		{"type":"array","items":{"type":"object"}},
		{"type":["object","array"],"additionalProperties":false,
			"properties":{"path":{"type":"string","description":"d","x-aliases":["file"]}}}]}}}`)
	got, repairs, err := check(t, s, `{"a":{"file":"x"}}`)
	if err != nil || got != `{"a":[{"file":"x"}]}` || len(repairs) != 1 {
		t.Errorf("Check = %s, %v, %v, want the value in a list", got, repairs, err)
	}
}

func TestCheckRaw(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{
		"command":{"type":"string","description":"what to run","x-raw":true,"x-role":"command"},
		"cwd":{"type":"string","description":"where"}},"required":["command"]}`)
	for _, tt := range []struct{ in, want string }{
		{`"ls -la"`, `{"command":"ls -la"}`},
		{`"{\"command\":\"ls\"}"`, `{"command":"ls"}`},
		{`"5"`, `{"command":"5"}`},
	} {
		got, repairs, err := check(t, s, tt.in)
		if err != nil || got != tt.want || len(repairs) != 1 {
			t.Errorf("Check(%s) = %s, %v, %v, want %s and one repair", tt.in, got, repairs, err, tt.want)
		}
	}
}

func TestCheckExplains(t *testing.T) {
	s := compile(t, everything)
	for _, tt := range []struct{ name, in, want string }{
		{"nothing given", ``, "missing required field 'path' in arguments"},
		{"not an object", `[1]`, "arguments: expected object, got array"},
		{"nested missing", `{"path":"a","range":{}}`, "missing required field 'from' in arguments.range"},
		{"in a list", `{"path":"a","items":[{"path":"b"},{}]}`, "missing required field 'path' in arguments.items[1]"},
		{"nearest name", `{"path":"a","lmit":1}`, "unknown field 'lmit' in arguments, did you mean 'limit'?"},
		{"no argument means approved", `{"path":"a","approved":true}`, "unknown field 'approved' in arguments, expected " +
			"deep, globs, headers, items, limit, maybe, mode, path, range, ratio, token"},
		{"an alias beside its name", `{"path":"a","file":"b"}`, "unknown field 'file' in arguments, it is another name of 'path', which is given too"},
		{"a fraction is no string", `{"path":1.5}`, "arguments.path: expected string, got number 1.5"},
		{"a boolean is no string", `{"path":true}`, "arguments.path: expected string, got boolean true"},
		{"not a whole number", `{"path":"a","limit":"5.5"}`, `arguments.limit: expected integer, got string "5.5"`},
		{"nearly a boolean", `{"path":"a","deep":"yes"}`, `arguments.deep: expected boolean, got string "yes"`},
		{"enums are strict", `{"path":"a","mode":"Texts"}`, `arguments.mode: expected one of "text", "binary", got "Texts", did you mean "text"?`},
		{"too large", `{"path":"a","limit":500}`, "arguments.limit: expected 1 to 100, got 500"},
		{"too large after a repair", `{"path":"a","limit":"500"}`, "arguments.limit: expected 1 to 100, got 500"},
		{"a secret is not shown", `{"path":"a","token":"hunter2"}`, "arguments.token: expected text that matches ^t-, got string"},
		{"a secret of another type is not shown", `{"path":"a","token":true}`, "arguments.token: expected string, got boolean"},
		{"nor one within the whole", `"{\"token\":\"hunter2\""`, "arguments: expected object, got string"},
		{"nor one within a part", `{"path":"a","range":["hunter2"]}`, "arguments.range: expected object, got array"},
		{"neither of two types", `{"path":"a","maybe":"x"}`, `arguments.maybe: expected integer or null, got string "x"`},
		{
			"all at once", `{"limit":0,"mode":"x","lmit":1}`,
			"missing required field 'path' in arguments; unknown field 'lmit' in arguments, did you mean 'limit'?; " +
				`arguments.limit: expected 1 to 100, got 0; arguments.mode: expected one of "text", "binary", got "x"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, repairs, err := check(t, s, tt.in)
			if err == nil {
				t.Fatalf("Check(%s) succeeded with %v", tt.in, repairs)
			}
			if err.Code != tool.InvalidArgument || err.Message != tt.want {
				t.Errorf("Check(%s):\n got %s: %s\nwant %s", tt.in, err.Code, err.Message, tt.want)
			}
			if !strings.HasPrefix(err.Hint, "the tool takes deep (boolean)") || !strings.Contains(err.Hint, "path (string, required)") {
				t.Errorf("Check(%s) hint = %q, want the list of arguments", tt.in, err.Hint)
			}
		})
	}
}

func TestCheckManyMistakes(t *testing.T) {
	s := compile(t, everything)
	items := strings.Repeat(`1,`, 50_000) + `1`
	_, _, err := check(t, s, `{"path":"a","globs":[`+items+`]}`)
	if err == nil || !strings.HasSuffix(err.Message, "and 49981 more mistakes") || len(err.Message) > 4096 {
		t.Errorf("Check of 50,001 mistakes: %v, want 20 of them and the number of the others", err)
	}
}

func TestCompileRefuses(t *testing.T) {
	property := func(p string) string { return `{"type":"object","properties":{"a":` + p + `}}` }
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", ``, "there is none"},
		{"not JSON", `{"type"`, "not valid JSON: line 1, column 8 (byte 7): unexpected end of JSON input"},
		{"not an object", `true`, "expected an object, got boolean"},
		{"root type", `{"type":"string"}`, `at the root: the type must be "object"`},
		{"no root type", `{}`, `at the root: the type must be "object"`},
		{"no type", property(`{"description":"d"}`), "at /properties/a: the property has no type"},
		{"no description", property(`{"type":"string"}`), "at /properties/a: the property has no description"},
		{"invisible characters", property(`{"type":"string","description":"ok\u001b[2J\u202e"}`), "at /properties/a: the description has control characters, or others that cannot be seen"},
		{"blank description", property(`{"type":"string","description":" "}`), "at /properties/a: the property has no description"},
		{"anything", property(`true`), "at /properties/a: the property has no type"},
		{
			"nested", property(`{"type":"object","description":"d","properties":{"b":{"type":"string"}}}`),
			"at /properties/a/properties/b: the property has no description",
		},
		{
			"in items", property(`{"type":"array","description":"d","items":{"type":"object","properties":{"b":{"description":"d"}}}}`),
			"at /properties/a/items/properties/b: the property has no type",
		},
		{
			"in an alternative", `{"type":"object","oneOf":[{"properties":{"b":{"type":"string"}}}]}`,
			"at /oneOf/0/properties/b: the property has no description",
		},
		{"role", property(`{"type":"string","description":"d","x-role":"host"}`), `at /properties/a: x-role must be one of path, command, script, url, patch, secret, argv, repository, got "host"`},
		{"aliases", property(`{"type":"string","description":"d","x-aliases":"b"}`), `at /properties/a: x-aliases must be a list of names, got "b"`},
		{"an alias that is no name", property(`{"type":"string","description":"d","x-aliases":[1]}`), "at /properties/a: x-aliases must hold names, got 1"},
		{"an alias of itself", property(`{"type":"string","description":"d","x-aliases":["a"]}`), `at /properties/a: the alias "a" is the name of a property`},
		{"an alias twice", property(`{"type":"string","description":"d","x-aliases":["b","b"]}`), `at /properties/a: the alias "b" belongs to property "a" already`},
		{"raw number", property(`{"type":"integer","description":"d","x-raw":true}`), "at /properties/a: x-raw may mark a property of the root, of type string, only"},
		{"raw text", property(`{"type":"string","description":"d","x-raw":"yes"}`), `at /properties/a: x-raw must be true where it stands, got "yes"`},
		{
			"raw twice", `{"type":"object","properties":{"a":{"type":"string","description":"d","x-raw":true},"b":{"type":"string","description":"d","x-raw":true}}}`,
			"at /properties/b: x-raw marks a already",
		},
		{"remote reference", property(`{"$ref":"https://example.com/x","description":"d"}`), `at /properties/a: $ref must stay inside the schema and begin with "#/", got "https://example.com/x"`},
		{"file reference", property(`{"$ref":"file:///etc/passwd","description":"d"}`), "must stay inside the schema"},
		{"reference to an anchor", property(`{"$ref":"#x","description":"d"}`), `$ref must stay inside the schema and begin with "#/", got "#x"`},
		{"dynamic reference", property(`{"$dynamicRef":"#x","type":"string","description":"d"}`), "at /properties/a: $dynamicRef is not supported, use $ref"},
		{
			"endless work on nested values", `{"type":"object","$ref":"#/$defs/n","$defs":{"n":{"type":"object","anyOf":[
				{"properties":{"x":{"$ref":"#/$defs/n","description":"d"}},"required":["y"]},
				{"properties":{"x":{"$ref":"#/$defs/n","description":"d"}},"required":["z"]}]}}}`,
			"at the root: checking could take too long",
		},
		{"endless work on one value", doubling(40), "at the root: checking could take too long"},
		{"reference to nothing", property(`{"$ref":"#/$defs/x","type":"string","description":"d"}`), "not valid JSON Schema 2020-12"},
		{"nested id", property(`{"$id":"https://example.com/x","type":"string","description":"d"}`), "$id may stand at the root only"},
		{"old dialect", `{"type":"object","$schema":"http://json-schema.org/draft-07/schema#"}`, "at /$schema: the version must be https://json-schema.org/draft/2020-12/schema"},
		{"wrong keyword", property(`{"type":"string","description":"d","minLength":-1}`), "at /properties/a/minLength: not valid JSON Schema 2020-12"},
		{"wrong type", property(`{"type":"text","description":"d"}`), "at /properties/a/type: not valid JSON Schema 2020-12"},
		{"bad pattern", property(`{"type":"string","description":"d","pattern":"("}`), "not valid JSON Schema 2020-12"},
		{"too large", `{"type":"object","title":"` + strings.Repeat("x", 256<<10) + `"}`, "more than the 256KiB that are allowed"},
		{"too deep", strings.Repeat(`{"type":"object","not":`, 65) + `{}` + strings.Repeat(`}`, 65), "nested deeper than 64 levels"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := schema.Compile([]byte(tt.in))
			if err == nil {
				t.Fatalf("Compile(%s) succeeded", tt.in)
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "input schema: ") {
				t.Errorf("Compile error:\n got %v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestDeepAlternatives checks that a mistake deep within alternatives is found
// without going through them again at each level.
func TestDeepAlternatives(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"list":{"$ref":"#/$defs/node","description":"the first"}},
		"$defs":{"node":{"type":"object","properties":{
			"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}],"description":"the next"}}}}}`)
	levels := 60
	text := `{"list":` + strings.Repeat(`{"next":`, levels) + `{"nxt":null}` + strings.Repeat(`}`, levels) + `}`
	_, _, err := check(t, s, text)
	want := "unknown field 'nxt' in arguments.list" + strings.Repeat(".next", levels) + ", did you mean 'next'?"
	if err == nil || err.Message != want {
		t.Errorf("Check: %v, want %s", err, want)
	}
}

// doubling returns a schema of definitions that each apply the next one twice.
func doubling(levels int) string {
	var b strings.Builder
	for i := range levels {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"type":"object","$ref":"#/$defs/d0","$defs":{%s"d%d":{"type":"object"}}}`, b.String(), levels)
}

// TestRecursiveSchemas checks that schemas may refer to themselves.
func TestRecursiveSchemas(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"filter":{"$ref":"#/$defs/filter","description":"what to find"}},
		"$defs":{"filter":{"type":"object","oneOf":[
			{"properties":{"and":{"type":"array","description":"all of them","items":{"$ref":"#/$defs/filter"}}},"required":["and"]},
			{"properties":{"or":{"type":"array","description":"one of them","items":{"$ref":"#/$defs/filter"}}},"required":["or"]},
			{"properties":{"not":{"$ref":"#/$defs/filter","description":"none of them"}},"required":["not"]},
			{"properties":{"name":{"type":"string","description":"by name"}},"required":["name"]}]}}}`)
	if _, _, err := check(t, s, `{"filter":{"and":[{"name":"a"},{"not":{"or":[{"name":"b"}]}}]}}`); err != nil {
		t.Errorf("Check: %v", err)
	}
	deep := strings.Repeat(`{"not":`, 60) + `{"name":1}` + strings.Repeat(`}`, 60)
	if _, _, err := check(t, s, `{"filter":`+deep+`}`); err == nil {
		t.Error("Check of a name that is a number, 60 levels down, succeeded")
	}
}

func TestPublic(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"closed", `{"type":"object"}`, `{"additionalProperties":false,"properties":{},"type":"object"}`},
		{"closed though it says otherwise", `{"type":"object","additionalProperties":true}`, `{"additionalProperties":false,"properties":{},"type":"object"}`},
		{
			"without keywords of the host's", `{"type":"object","x-any":1,"properties":{"x-role":{"type":"string","description":"d","x-role":"path","x-aliases":["p"],"x-raw":true}}}`,
			`{"additionalProperties":false,"properties":{"x-role":{"description":"d","type":"string"}},"type":"object"}`,
		},
		{
			"values are left alone", `{"type":"object","default":{"x-y":1},"properties":{}}`,
			`{"additionalProperties":false,"default":{"x-y":1},"properties":{},"type":"object"}`,
		},
		{
			"composed", `{"type":"object","properties":{"a":{"type":"string","description":"d"}},"anyOf":[{"required":["a"]}]}`,
			`{"anyOf":[{"required":["a"]}],"properties":{"a":{"description":"d","type":"string"}},"type":"object","unevaluatedProperties":false}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(compile(t, tt.in).Public()); got != tt.want {
				t.Errorf("Public of %s:\n got %s\nwant %s", tt.in, got, tt.want)
			}
		})
	}
}

// TestComposedSchemas checks that closing a schema forbids what no part of it
// declares, and nothing else.
func TestComposedSchemas(t *testing.T) {
	s := compile(t, `{"type":"object",
		"properties":{"kind":{"type":"string","description":"d"},"box":{"$ref":"#/$defs/box","description":"d"}},
		"allOf":[{"$ref":"#/$defs/base"}],
		"oneOf":[
			{"properties":{"a":{"type":"string","description":"d","x-aliases":["aa"]}},"required":["a"]},
			{"properties":{"b":{"type":"integer","description":"d"}},"required":["b"]}],
		"$defs":{
			"base":{"type":"object","properties":{"id":{"type":"string","description":"d"}}},
			"box":{"type":"object","properties":{"w":{"type":"integer","description":"d"}}}}}`)
	for _, tt := range []struct{ in, want string }{
		{`{"kind":"x","id":"1","a":"y"}`, ""},
		{`{"b":2,"box":{"w":1}}`, ""},
		{`{"b":2,"box":{"h":1}}`, "unknown field 'h' in arguments.box, expected w"},
		{`{"b":2,"c":1}`, "unknown field 'c' in arguments, expected a, b, box, id, kind"},
		{`{"kind":"x"}`, "arguments: expected exactly what one of the forms in the schema says"},
	} {
		_, _, err := check(t, s, tt.in)
		if tt.want == "" && err != nil {
			t.Errorf("Check(%s): %v", tt.in, err)
		}
		if tt.want != "" && (err == nil || !strings.Contains(err.Message, tt.want)) {
			t.Errorf("Check(%s): %v, want %s", tt.in, err, tt.want)
		}
	}
}

func ExampleSchema_Check() {
	s, err := schema.Compile([]byte(`{
		"type": "object",
		"properties": {
			"path":  {"type": "string", "description": "file to read"},
			"limit": {"type": "integer", "description": "lines to read"}
		},
		"required": ["path"]
	}`))
	if err != nil {
		panic(err)
	}
	for _, text := range []string{`{"path": "README.md", "limit": "5"}`, `{"pth": "README.md"}`} {
		arguments, mistake := schema.Read([]byte(text))
		if mistake != nil {
			panic(mistake)
		}
		checked, mistakes := s.Check(arguments)
		if mistakes != nil {
			fmt.Println(mistakes.ModelText())
			continue
		}
		fmt.Println(string(checked.Canonical), checked.Repairs)
	}
	// Output:
	// {"limit":5,"path":"README.md"} [{arguments.limit string to integer}]
	// Tool execution failed: missing required field 'path' in arguments; unknown field 'pth' in arguments, did you mean 'path'?
	// Hint: the tool takes limit (integer), path (string, required)
}

// TestIntegersFit checks that what passes as an integer is one of 64 bits.
func TestIntegersFit(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{
		"n":{"type":"integer","description":"a number"},
		"even":{"type":"integer","maximum":100,"multipleOf":2,"description":"a number"},
		"any":{"type":["integer","null"],"minimum":-1e30,"description":"a number"},
		"list":{"type":"array","items":{"$ref":"#/$defs/n"},"description":"numbers"}},
		"$defs":{"n":{"type":"integer"}}}`)
	const low, high = "expected at least -9223372036854775808, got ", "expected at most 9223372036854775807, got "
	for _, tt := range []struct{ in, want string }{
		{`{"n":9223372036854775807,"any":-9223372036854775808}`, ""},
		{`{"any":null,"list":[0]}`, ""},
		{`{"n":9223372036854775808}`, "arguments.n: " + high + "9223372036854775808"},
		{`{"n":1e30}`, "arguments.n: " + high + "1e30"},
		{`{"n":"1e30"}`, `arguments.n: expected integer, got string "1e30"`},
		{`{"any":-1e20}`, "arguments.any: " + low + "-1e20"},
		{`{"list":[1,1e19]}`, "arguments.list[1]: " + high + "1e19"},
		{`{"even":102}`, "arguments.even: expected at most 100, got 102"},
	} {
		_, _, err := check(t, s, tt.in)
		if (err == nil) != (tt.want == "") || err != nil && err.Message != tt.want {
			t.Errorf("Check(%s) = %v, want %q", tt.in, err, tt.want)
		}
	}
	if public := string(s.Public()); strings.Contains(public, "9223372036854775807") {
		t.Errorf("clients see the bounds: %s", public)
	}
}

func TestSame(t *testing.T) {
	const text = `{"type":"object","properties":{"p":{"type":"string","description":"a < b","x-role":"path"}}}`
	s, output := compile(t, text), compileOutput(t, text)
	for _, tt := range []struct {
		other              string
		wantIn, wantOutput bool
	}{
		{text, true, true},
		{`{"properties": {"p": {"description": "a \u003c b", "x-role": "path", "type": "string"}}, "type": "object"}`, true, true},
		{strings.Replace(text, "path", "url", 1), false, true}, // no role counts in a result
		{strings.Replace(text, "string", "integer", 1), false, false},
	} {
		if got := s.Same(compile(t, tt.other)); got != tt.wantIn {
			t.Errorf("Schema.Same(%s) = %v, want %v", tt.other, got, tt.wantIn)
		}
		if got := output.Same(compileOutput(t, tt.other)); got != tt.wantOutput {
			t.Errorf("Output.Same(%s) = %v, want %v", tt.other, got, tt.wantOutput)
		}
	}
	if output.Same(nil) || !(*schema.Output)(nil).Same(nil) {
		t.Error("Same of no output schema is wrong")
	}
}

func compileOutput(tb testing.TB, text string) *schema.Output {
	tb.Helper()
	o, err := schema.CompileOutput([]byte(text))
	if err != nil {
		tb.Fatalf("CompileOutput(%s): %v", text, err)
	}
	return o
}
