package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// checked returns arguments as a call has them after they were checked.
func checked(tb testing.TB, s *schema.Schema, arguments string) schema.Arguments {
	tb.Helper()
	value, mistake := schema.Read([]byte(arguments))
	if mistake != nil {
		tb.Fatalf("Read(%s): %v", arguments, mistake)
	}
	args, mistake := s.Check(value)
	if mistake != nil {
		tb.Fatalf("Check(%s): %v", arguments, mistake)
	}
	return args
}

func TestListsOf(t *testing.T) {
	const word = `{"type":"string","x-role":"argv"}`
	for _, tt := range []struct {
		name, properties, arguments string
		want                        [][]string
	}{
		{"a list with the role", `"a":{"type":"array","items":{"type":"string"},"description":"d","x-role":"argv"}`, `{"a":["ls","-l"]}`, [][]string{{"ls", "-l"}}},
		{"a list whose items have it", `"a":{"type":"array","items":` + word + `,"description":"d"}`, `{"a":["ls","-l"]}`, [][]string{{"ls", "-l"}}},
		{"two lists", `"b":{"type":"array","items":` + word + `,"description":"d"},"a":{"type":"array","items":` + word + `,"description":"d"}`, `{"b":["ls"],"a":["rm","x"]}`, [][]string{{"rm", "x"}, {"ls"}}},
		{
			"lists in a list", `"a":{"type":"array","description":"d","items":{"type":"object","properties":{"run":{"type":"array","items":` + word + `,"description":"d"}}}}`,
			`{"a":[{"run":["ls","-l"]},{"run":["rm"]}]}`,
			[][]string{{"ls", "-l"}, {"rm"}},
		},
		{"a text", `"a":{"type":"string","description":"d","x-role":"argv"}`, `{"a":"ls"}`, [][]string{{"ls"}}},
		{"left out", `"a":{"type":"array","items":` + word + `,"description":"d"}`, `{}`, nil},
		{"another role", `"a":{"type":"array","items":{"type":"string"},"description":"d","x-role":"path"}`, `{"a":["ls"]}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := compile(t, `{"type":"object","properties":{`+tt.properties+`}}`)
			if diff := cmp.Diff(tt.want, s.ListsOf(tool.RoleArgv, checked(t, s, tt.arguments).Values)); diff != "" {
				t.Errorf("lists (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValuesOf(t *testing.T) {
	for _, tt := range []struct {
		name, properties, defs, arguments string
		want                              map[tool.Role][]string
	}{
		{
			"each role", `"p":{"type":"string","description":"d","x-role":"path"},"c":{"type":"string","description":"d","x-role":"command"},
				"s":{"type":"string","description":"d","x-role":"script"},"u":{"type":"string","description":"d","x-role":"url"},
				"d":{"type":"string","description":"d","x-role":"patch"},"k":{"type":"string","description":"d","x-role":"secret"},"t":{"type":"string","description":"d"}`, ``,
			`{"p":"1","c":"2","s":"3","u":"4","k":"5","t":"6","d":"7"}`,
			map[tool.Role][]string{"path": {"1"}, "command": {"2"}, "script": {"3"}, "url": {"4"}, "secret": {"5"}, "patch": {"7"}},
		},
		{"left out", `"p":{"type":"string","description":"d","x-role":"path"}`, ``, `{}`, nil},
		{
			"not a text", `"p":{"type":["string","integer"],"description":"d","x-role":"path"}`, ``, `{"p":7}`, nil,
		},
		{
			"in canonical order", `"b":{"type":"string","description":"d","x-role":"path"},"a":{"type":"string","description":"d","x-role":"path"}`, ``,
			`{"b":"2","a":"1"}`,
			map[tool.Role][]string{"path": {"1", "2"}},
		},
		{
			"a list whose property has the role", `"p":{"type":"array","items":{"type":"string"},"description":"d","x-role":"path"}`, ``,
			`{"p":["1","2"]}`,
			map[tool.Role][]string{"path": {"1", "2"}},
		},
		{
			"a list whose items have the role", `"p":{"type":"array","items":{"type":"string","x-role":"path"},"description":"d"}`, ``,
			`{"p":["1","2"]}`,
			map[tool.Role][]string{"path": {"1", "2"}},
		},
		{
			"some items of a list", `"p":{"type":"array","prefixItems":[{"type":"string"},{"type":"string","x-role":"path"}],"items":{"type":"string","x-role":"url"},"description":"d"}`, ``,
			`{"p":["1","2","3","4"]}`,
			map[tool.Role][]string{"path": {"2"}, "url": {"3", "4"}},
		},
		{
			"a list of objects",
			`"edits":{"type":"array","description":"d","items":{"type":"object","properties":{"file":{"type":"string","description":"d","x-role":"path"},"text":{"type":"string","description":"d"}}}}`, ``,
			`{"edits":[{"file":"1","text":"x"},{"file":"2"}]}`,
			map[tool.Role][]string{"path": {"1", "2"}},
		},
		{
			"a map", `"files":{"type":"object","description":"d","additionalProperties":{"type":"string","x-role":"path"}}`, ``,
			`{"files":{"x":"1","y":"2"}}`,
			map[tool.Role][]string{"path": {"1", "2"}},
		},
		{
			"a map beside properties and patterns",
			`"m":{"type":"object","description":"d","properties":{"plain":{"type":"string","description":"d"}},
				"patternProperties":{"^u_":{"type":"string","description":"d","x-role":"url"},"^t_":{"type":"string","description":"d"}},
				"additionalProperties":{"type":"string","x-role":"path"}}`, ``,
			`{"m":{"plain":"0","u_a":"1","t_a":"2","other":"3"}}`,
			map[tool.Role][]string{"url": {"1"}, "path": {"3"}},
		},
		{
			"what no schema evaluates", `"m":{"type":"object","description":"d","properties":{"plain":{"type":"string","description":"d"}},"unevaluatedProperties":{"type":"string","x-role":"path"}},
				"l":{"type":"array","description":"d","prefixItems":[{"type":"string"}],"unevaluatedItems":{"type":"string","x-role":"path"}}`, ``,
			`{"m":{"plain":"0","other":"2"},"l":["0","1"]}`,
			map[tool.Role][]string{"path": {"1", "2"}},
		},
		{
			"a reference", `"p":{"$ref":"#/$defs/file","description":"d"}`, `"file":{"type":"string","x-role":"path"}`,
			`{"p":"1"}`,
			map[tool.Role][]string{"path": {"1"}},
		},
		{
			"a reference in a list, with a role of its own", `"p":{"type":"array","items":{"$ref":"#/$defs/file","x-role":"url"},"description":"d"}`, `"file":{"type":"string","x-role":"path"}`,
			`{"p":["1"]}`,
			map[tool.Role][]string{"path": {"1"}, "url": {"1"}},
		},
		{
			"a reference by an escaped name", `"p":{"$ref":"#/$defs/a~1b%25~0","description":"d"}`, `"a/b%~":{"type":"string","x-role":"path"}`,
			`{"p":"1"}`,
			map[tool.Role][]string{"path": {"1"}},
		},
		{
			"a schema of itself", `"tree":{"$ref":"#/$defs/tree","description":"d"}`,
			`"tree":{"type":"object","properties":{"file":{"type":"string","description":"d","x-role":"path"},"below":{"type":"array","description":"d","items":{"$ref":"#/$defs/tree"}}}}`,
			`{"tree":{"file":"3","below":[{"file":"1"},{"below":[{"file":"2"}]}]}}`,
			map[tool.Role][]string{"path": {"1", "2", "3"}},
		},
		{
			"alternatives, of which it fits one", `"p":{"description":"d","anyOf":[{"type":"string","x-role":"path"},{"type":"array","items":{"type":"string","x-role":"url"}}]}`, ``,
			`{"p":["1"]}`,
			map[tool.Role][]string{"url": {"1"}},
		},
		{
			"alternatives that both count", `"p":{"description":"d","oneOf":[{"type":"string","pattern":"^/","x-role":"path"},{"type":"string","pattern":"^h","x-role":"url"}]}`, ``,
			`{"p":"http"}`,
			map[tool.Role][]string{"path": {"http"}, "url": {"http"}},
		},
		{
			"all of several", `"p":{"type":"string","description":"d","allOf":[{"minLength":1},{"x-role":"path"}]}`, ``,
			`{"p":"1"}`,
			map[tool.Role][]string{"path": {"1"}},
		},
		{
			"then and else", `"p":{"type":"string","description":"d","if":{"pattern":"^/"},"then":{"x-role":"path"},"else":{"x-role":"url"}}`, ``,
			`{"p":"1"}`,
			map[tool.Role][]string{"path": {"1"}, "url": {"1"}},
		},
		{
			"below a value with the role", `"p":{"type":"object","description":"d","x-role":"path","additionalProperties":{"type":["string","array"]}}`, ``,
			`{"p":{"a":"1","b":["2",["3"]]}}`,
			map[tool.Role][]string{"path": {"1", "2", "3"}},
		},
		{
			"a property with the keyword's name", `"x-role":{"type":"string","description":"path"}`, ``, `{"x-role":"path"}`, nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := compile(t, `{"type":"object","properties":{`+tt.properties+`},"$defs":{`+tt.defs+`}}`)
			args := checked(t, s, tt.arguments)
			for _, role := range tool.Roles() {
				if diff := cmp.Diff(tt.want[role], s.ValuesOf(role, args.Values)); diff != "" {
					t.Errorf("ValuesOf(%s, %s) (-want +got):\n%s", role, tt.arguments, diff)
				}
			}
			var shown []tool.Role // to people, who must see each role that a value has
			for _, p := range s.Arguments() {
				shown = append(shown, p.Roles...)
			}
			for role := range tt.want {
				if !slices.Contains(shown, role) {
					t.Errorf("Arguments shows the roles %v, without %s", shown, role)
				}
			}
			if got := s.ValuesOf("file", args.Values); got != nil {
				t.Errorf("ValuesOf(file) = %v, want none of what is no role", got)
			}
		})
	}
}

// TestValuesOfTheRoot marks all arguments at once.
func TestValuesOfTheRoot(t *testing.T) {
	s := compile(t, `{"type":"object","x-role":"secret","additionalProperties":{"type":["string","integer"]}}`)
	args := checked(t, s, `{"a":"1","b":2}`)
	if diff := cmp.Diff([]string{"1"}, s.ValuesOf(tool.RoleSecret, args.Values)); diff != "" {
		t.Errorf("ValuesOf (-want +got):\n%s", diff)
	}
	got, some := s.Hidden(args.Values)
	if diff := cmp.Diff(map[string]any{"a": "(hidden)", "b": "(hidden)"}, got); diff != "" || !some {
		t.Errorf("Hidden = %v (-want +got):\n%s", some, diff)
	}
}

func TestHidden(t *testing.T) {
	const properties = `
		"key":{"type":["string","integer","null"],"description":"d","x-role":"secret"},
		"keys":{"type":"array","items":{"type":"string","x-role":"secret"},"description":"d"},
		"all":{"type":"array","items":{"type":"string"},"description":"d","x-role":"secret"},
		"login":{"type":"object","description":"d","properties":{"user":{"type":"string","description":"d"},"password":{"$ref":"#/$defs/secret","description":"d"}}},
		"logins":{"type":"array","description":"d","items":{"type":"object","additionalProperties":{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/secret"}]}}},
		"path":{"type":"string","description":"d","x-role":"path"}`
	s := compile(t, `{"type":"object","properties":{`+properties+`},"$defs":{"secret":{"type":"string","x-role":"secret"}}}`)
	for _, tt := range []struct{ in, want string }{
		{`{}`, ``},
		{`{"path":"a","login":{"user":"ann"},"keys":[],"key":null}`, ``},
		{`{"key":"hunter2","path":"a"}`, `{"key":"(hidden)","path":"a"}`},
		{`{"key":5}`, `{"key":"(hidden)"}`},
		{`{"keys":["hunter2","hunter3"]}`, `{"keys":["(hidden)","(hidden)"]}`},
		{`{"all":["hunter2"]}`, `{"all":"(hidden)"}`},
		{`{"login":{"user":"ann","password":"hunter2"}}`, `{"login":{"password":"(hidden)","user":"ann"}}`},
		{`{"logins":[{"a":1},{"b":"hunter2"}]}`, `{"logins":[{"a":1},{"b":"(hidden)"}]}`},
	} {
		args := checked(t, s, tt.in)
		got, some := s.Hidden(args.Values)
		if some != (tt.want != "") {
			t.Errorf("Hidden(%s) = %v, %v, want a secret: %v", tt.in, got, some, tt.want != "")
		}
		if want := tt.want; some && string(schema.Canonical(got)) != want {
			t.Errorf("Hidden(%s) = %s, want %s", tt.in, schema.Canonical(got), want)
		}
		if now := string(schema.Canonical(args.Values)); now != string(args.Canonical) {
			t.Errorf("Hidden(%s) changed the arguments to %s", tt.in, now)
		}
	}
}

// TestHiddenCopiesNothingWithoutNeed also covers the schema that has no
// secrets, which most have.
func TestHiddenCopiesNothingWithoutNeed(t *testing.T) {
	for _, role := range []tool.Role{tool.RolePath, tool.RoleSecret} {
		s := compile(t, fmt.Sprintf(`{"type":"object","properties":{"p":{"type":"string","description":"d","x-role":%q},"q":{"type":"integer","description":"d"}}}`, role))
		args := checked(t, s, `{"q":1}`)
		if allocs := testing.AllocsPerRun(10, func() {
			if _, some := s.Hidden(args.Values); some {
				t.Error("Hidden found a secret, want none")
			}
		}); role == tool.RolePath && allocs != 0 {
			t.Errorf("%s: Hidden allocates %v times, want none", role, allocs)
		}
		got, _ := s.Hidden(args.Values)
		got["seen"] = true
		if args.Values["seen"] == nil {
			t.Errorf("%s: Hidden copied arguments without a secret", role)
		}
	}
}

func TestRolesWithoutEffectAreRefused(t *testing.T) {
	const role = `{"type":"string","x-role":"path"}`
	for _, tt := range []struct{ property, want string }{
		{`{"type":"object","description":"d","propertyNames":` + role + `}`, "at /properties/p/propertyNames: x-role has no effect here"},
		{`{"type":"array","description":"d","contains":` + role + `}`, "at /properties/p/contains: x-role has no effect here"},
		{`{"type":"string","description":"d","not":` + role + `}`, "at /properties/p/not: x-role has no effect here"},
		{`{"type":"object","description":"d","if":{"properties":{"q":` + role + `}}}`, "at /properties/p/if/properties/q: x-role has no effect here"},
		{`{"type":"string","description":"d","contentSchema":` + role + `}`, "at /properties/p/contentSchema: x-role has no effect here"},
		{`{"type":"string","description":"d","then":` + role + `}`, "at /properties/p/then: x-role has no effect here"},
		{`{"type":"array","description":"d","items":{"type":"string","x-role":"file"}}`, `at /properties/p/items: x-role must be one of path, `},
	} {
		_, err := schema.Compile([]byte(`{"type":"object","properties":{"p":` + tt.property + `}}`))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Compile(%s) = %v, want %q", tt.property, err, tt.want)
		}
	}
}

// TestRolesInVastSchemas finds a role behind as many alternatives as a schema
// may have, which lead to each other. It ends at once, or never.
func TestRolesInVastSchemas(t *testing.T) {
	var defs []string
	for i := range 200 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+2))
	}
	defs = append(defs, `"d200":{"type":"string","x-role":"path"}`, `"d201":{"type":"integer"}`)
	_, err := schema.Compile([]byte(`{"type":"object","properties":{"p":{"$ref":"#/$defs/d0","description":"d"}},"$defs":{` + strings.Join(defs, ",") + `}}`))
	if err == nil {
		t.Error("Compile of alternatives without bound succeeded, want it refused before roles are looked for")
	}

	text := strings.Repeat(`{"$ref":"#/$defs/node"},`, 50)
	s := compile(t, `{"type":"object","properties":{"list":{"type":"array","description":"d","items":{"anyOf":[`+text+`{"type":"string"}]}}},
		"$defs":{"node":{"type":"string","x-role":"path"}}}`)
	args := checked(t, s, `{"list":[`+strings.Repeat(`"a",`, 999)+`"a"]}`)
	if got := len(s.ValuesOf(tool.RolePath, args.Values)); got != 1000 {
		t.Errorf("ValuesOf found %d texts, want 1000, each once", got)
	}
}

// nest builds a schema and a value around a text with a role; each step of how chooses one
// layer. It returns the property p of a tool.
func nest(how []byte, role tool.Role) (property any, defs map[string]any, value any) {
	defs = make(map[string]any)
	var inner any = map[string]any{"type": "string", "x-role": string(role)}
	value = needle
	described := func(sub any) map[string]any { // a property needs a description
		m := maps.Clone(sub.(map[string]any))
		m["description"] = "d"
		return m
	}
	decoy := map[string]any{"type": "boolean"}
	for i, step := range how {
		switch step % 14 {
		case 0:
			inner = map[string]any{"type": "object", "properties": map[string]any{"p": described(inner), "q": described(decoy)}}
			value = map[string]any{"p": value, "q": true}
		case 1:
			inner, value = map[string]any{"type": "array", "items": inner}, []any{value, value}
		case 2:
			inner = map[string]any{"type": "array", "prefixItems": []any{decoy, inner}, "items": decoy}
			value = []any{true, value, false}
		case 3:
			inner = map[string]any{"type": "array", "prefixItems": []any{decoy}, "unevaluatedItems": inner}
			value = []any{true, value}
		case 4:
			name := fmt.Sprintf("d/%%~%d", i)
			defs[name] = inner
			escaped := strings.NewReplacer("~", "~0", "/", "~1", "%", "%25").Replace(name)
			inner = map[string]any{"type": typeOf(value), "$ref": "#/$defs/" + escaped}
		case 5, 6, 7:
			keyword := []string{"anyOf", "oneOf", "anyOf"}[step%14-5]
			inner = map[string]any{keyword: []any{decoy, inner, map[string]any{"type": "null"}}}
		case 8:
			inner = map[string]any{"type": typeOf(value), "allOf": []any{map[string]any{}, inner}}
		case 9:
			inner = map[string]any{"type": "object", "additionalProperties": inner}
			value = map[string]any{"any": value}
		case 10:
			inner = map[string]any{"type": "object", "patternProperties": map[string]any{"^a": described(inner), "^b": described(decoy)}}
			value = map[string]any{"abc": value, "bcd": true}
		case 11:
			inner = map[string]any{"type": "object", "properties": map[string]any{"q": described(decoy)}, "unevaluatedProperties": inner}
			value = map[string]any{"p": value, "q": false}
		case 12:
			inner = map[string]any{"type": typeOf(value), "if": map[string]any{"type": "null"}, "else": inner}
		case 13:
			inner = map[string]any{
				"type": "object", "properties": map[string]any{"p": map[string]any{"type": typeOf(value), "description": "d"}, "on": described(decoy)},
				"dependentSchemas": map[string]any{"on": map[string]any{"properties": map[string]any{"p": described(inner)}}},
			}
			value = map[string]any{"p": value, "on": true}
		}
	}
	return map[string]any{"type": typeOf(value), "description": "d", "allOf": []any{inner}}, defs, value
}

const needle = "needle"

func typeOf(value any) string {
	switch value.(type) {
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// FuzzRoles shows that a text with a role is found in any nesting, and that nothing of a secret
// is left.
func FuzzRoles(f *testing.F) {
	f.Add([]byte(nil))
	for i := range byte(14) {
		f.Add([]byte{i})
		f.Add([]byte{i, 4, i})
		for j := range byte(14) {
			f.Add([]byte{i, j})
		}
	}
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13})
	f.Fuzz(func(t *testing.T, how []byte) {
		how = how[:min(len(how), 16)]
		for _, role := range tool.Roles() {
			property, defs, value := nest(how, role)
			text := mustJSON(t, map[string]any{"type": "object", "properties": map[string]any{"p": property}, "$defs": defs})
			s, err := schema.Compile(text)
			if err != nil && len(how) > 4 {
				t.Skip(err) // too much work to check
			}
			if err != nil {
				t.Fatal(err)
			}
			read, mistake := schema.Read(mustJSON(t, map[string]any{"p": value}))
			if mistake != nil {
				t.Fatal(mistake)
			}
			args, mistake := s.Check(read)
			if mistake != nil {
				t.Fatalf("Check of %s against %s: %v", mustJSON(t, value), text, mistake)
			}
			want := slices.Repeat([]string{needle}, strings.Count(string(args.Canonical), needle))
			if diff := cmp.Diff(want, s.ValuesOf(role, args.Values)); diff != "" {
				t.Errorf("ValuesOf(%s) of %s against %s (-want +got):\n%s", role, args.Canonical, text, diff)
			}
			without, some := s.Hidden(args.Values)
			if some != (role == tool.RoleSecret) {
				t.Errorf("Hidden of %s against %s = %v", args.Canonical, text, some)
			}
			if left := string(schema.Canonical(without)); some && strings.Contains(left, needle) {
				t.Errorf("Hidden of %s against %s leaves %s", args.Canonical, text, left)
			}
		}
	})
}

func mustJSON(tb testing.TB, value any) []byte {
	tb.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}
