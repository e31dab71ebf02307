package definition_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/plugins/mcp/internal/definition"
	"github.com/toolhost/toolhost/sdk/tool"
)

// schemaOf reads a schema as the MCP client does.
func schemaOf(t *testing.T, text string) any {
	t.Helper()
	var schema any
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// one converts a tool.
func one(t *testing.T, listed *mcp.Tool, opts definition.Options) definition.Tool {
	t.Helper()
	tools := definition.Convert([]*mcp.Tool{listed}, opts)
	if len(tools) != 1 {
		t.Fatalf("%d tools, want 1", len(tools))
	}
	return tools[0]
}

func TestTexts(t *testing.T) {
	t.Parallel()
	got := one(t, &mcp.Tool{Name: "Read\u202e", Title: "a\nb\x1b[2J", Description: " hides \u200b this \x07"}, definition.Options{Prefix: "p"}).Spec
	if got.Title != `a b\x1b[2J` || got.Description != `hides \u200b this \x07` {
		t.Errorf("title %q, description %q; want every character visible", got.Title, got.Description)
	}
	got = one(t, &mcp.Tool{Name: "Read\u202e"}, definition.Options{}).Spec
	if got.Title != `Read\u202e` || got.Description == "" {
		t.Errorf("title %q, description %q; want the server's name and some description", got.Title, got.Description)
	}
	got = one(t, &mcp.Tool{Name: "x", Title: strings.Repeat("t", 1000), Description: strings.Repeat("d", 1<<20)}, definition.Options{}).Spec
	if len(got.Title) > 256 || len(got.Description) > 16<<10 {
		t.Errorf("title of %d and description of %d bytes, want them cut", len(got.Title), len(got.Description))
	}
}

func TestTwinsAreRefused(t *testing.T) {
	t.Parallel()
	tools := definition.Convert([]*mcp.Tool{{Name: "read_file"}, {Name: "other"}, {Name: "readFile"}, {Name: "read-file"}, {Name: "r\u0435ad_file"}}, definition.Options{})
	if len(tools) != 3 {
		t.Fatalf("%d tools, want the twins as one, and two more", len(tools))
	}
	want := "3 tools of the server have the same name here: read_file, readFile, read-file"
	if got := tools[0].Spec; got.Name != "read_file" || got.Unavailable != want {
		t.Errorf("the twins are %s, unavailable because %q, want %q", got.Name, got.Unavailable, want)
	}
	if tools[1].Spec.Unavailable != "" || tools[2].Spec.Unavailable != "" || tools[2].Spec.Name == "read_file" {
		t.Errorf("%+v and %+v, want them available under other names", tools[1].Spec, tools[2].Spec)
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	no := false
	for _, tt := range []struct {
		name        string
		annotations *mcp.ToolAnnotations
		agreed      []string
		want        tool.Spec
	}{
		{"nothing is claimed", nil, nil, tool.Spec{Tier: tool.SideEffecting, Destructive: true, OpenWorld: true}},
		{"the worst is denied", &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}, nil, tool.Spec{Tier: tool.SideEffecting}},
		{"read only", &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}, nil, tool.Spec{Tier: tool.ReadOnly, OpenWorld: true}},
		{"idempotent by its own word", &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}, nil, tool.Spec{Tier: tool.SideEffecting}},
		{"idempotent, and the administrator agrees", &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}, []string{"x"}, tool.Spec{Tier: tool.SideEffecting, Idempotent: true}},
		{"the administrator alone", nil, []string{"x"}, tool.Spec{Tier: tool.SideEffecting, Destructive: true, OpenWorld: true}},
	} {
		got := one(t, &mcp.Tool{Name: "x", Annotations: tt.annotations}, definition.Options{Idempotent: tt.agreed}).Spec
		if got.Tier != tt.want.Tier || got.Destructive != tt.want.Destructive || got.OpenWorld != tt.want.OpenWorld || got.Idempotent != tt.want.Idempotent || !got.Foreign {
			t.Errorf("%s: %+v, want %+v and foreign", tt.name, got, tt.want)
		}
	}
}

func TestInputSchemas(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"type":"array","items":`, 100) + `{}` + strings.Repeat(`}`, 100)
	for _, tt := range []struct {
		name, schema string
		want         string // the schema, or a part of the reason
	}{
		{"missing", `null`, `{"properties":{},"type":"object"}`},
		{"true", `true`, `{"type":"object"}`},
		{"without a type", `{"properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		{
			"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`,
			`{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","properties":{"n":{"exclusiveMinimum":true,"minimum":0,"type":"number"}},"type":"object"}`,
		},
		{
			"draft 7", `{"type":"object","definitions":{"A":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/A"},"t":{"items":[{"type":"string"}]}},"dependencies":{"a":["t"]}}`,
			`{"definitions":{"A":{"type":"string"}},"dependencies":{"a":["t"]},"properties":{"a":{"$ref":"#/definitions/A"},"t":{"items":[{"type":"string"}]}},"type":"object"}`,
		},
		{"recursive", `{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"properties":{"a":{"$ref":"#"}},"type":"object"}`},
		{
			"keywords of the contract", `{"type":"object","x-other":1,"properties":{"a":{"x-role":"secret","x-aliases":["b"],"x-raw":true,"items":[{"x-role":"path"}]},"x-role":{"type":"string"}}}`,
			`{"properties":{"a":{"items":[{}]},"x-role":{"type":"string"}},"type":"object"}`,
		},
		{"keywords in data", `{"type":"object","properties":{"a":{"default":{"x-a":"path"}}}}`, `{"properties":{"a":{"default":{"x-a":"path"}}},"type":"object"}`},
		{"a reference to data", `{"type":"object","properties":{"a":{"$ref":"#/default/b"}},"default":{"b":{"x-role":"secret"}}}`, `default: its schema has the keyword x-role in a value`},
		{"invisible text", `{"type":"object","description":"a\u202eb","properties":{"a":{"title":"\u0007"}}}`, `{"description":"a\\u202eb","properties":{"a":{"title":"\\x07"}},"type":"object"}`},
		{"an invisible name", `{"type":"object","properties":{"a\u200b":{}}}`, `its schema has the name "a\u200b", with invisible characters`},
		{"an invisible value", `{"type":"object","properties":{"a":{"enum":["x",["\u200b"]]}}}`, `enum: its schema has the value "\u200b"`},
		{"an invisible pattern", `{"type":"object","properties":{"a":{"pattern":"\u200b"}}}`, `its schema has the value "\u200b"`},
		{"an invisible default", `{"type":"object","properties":{"a":{"default":{"\u200b":1}}}}`, `default: its schema has the value "\u200b"`},
		{"an invisible keyword", `{"type":"object","a\u200b":1}`, `its schema has the keyword "a\u200b"`},
		{"another type", `{"type":"string"}`, `its arguments are of type "string", expected an object`},
		{"several types", `{"type":["object","null"]}`, `its arguments are of type ["object","null"]`},
		{"false", `false`, `its schema is false, expected an object`},
		{"a text", `"object"`, `its schema is "object", expected an object`},
		{"deep", `{"type":"object","properties":{"a":` + deep + `}}`, `its schema is nested deeper than 64 levels`},
		{"deep data", `{"type":"object","default":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, `nested deeper than 64 levels`},
		{"huge", fmt.Sprintf(`{"type":"object","description":%q}`, strings.Repeat("x", 300<<10)), `more than the 256KiB that are allowed`},
	} {
		got := one(t, &mcp.Tool{Name: "x", InputSchema: schemaOf(t, tt.schema)}, definition.Options{}).Spec
		if got.Unavailable == "" && string(got.InputSchema) != tt.want {
			t.Errorf("%s: the schema is %s, want %s", tt.name, got.InputSchema, tt.want)
		}
		if got.Unavailable != "" && !strings.Contains(got.Unavailable, tt.want) {
			t.Errorf("%s: unavailable because %s, want %s", tt.name, got.Unavailable, tt.want)
		}
		if len(got.Unavailable) > 512 || tool.Visible(got.Unavailable) != got.Unavailable {
			t.Errorf("%s: a host refuses the reason %q", tt.name, got.Unavailable)
		}
	}
}

// The schemas of all tools together are bounded.
func TestAllSchemas(t *testing.T) {
	t.Parallel()
	large := schemaOf(t, fmt.Sprintf(`{"type":"object","description":%q}`, strings.Repeat("x", 200<<10)))
	var listed []*mcp.Tool
	for i := range 100 {
		listed = append(listed, &mcp.Tool{Name: fmt.Sprint("tool_", i), InputSchema: large})
	}
	offered := 0
	for _, converted := range definition.Convert(listed, definition.Options{}) {
		if converted.Spec.Unavailable == "" {
			offered++
		} else if !strings.Contains(converted.Spec.Unavailable, "larger than 16MiB in all") {
			t.Fatalf("unavailable because %q", converted.Spec.Unavailable)
		}
	}
	if offered != 81 {
		t.Errorf("%d tools of 100 with 200KiB are offered, want 81", offered)
	}
}

func TestOutputSchemas(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`null`: ``, `{"type":"array"}`: ``, `{"type":"object","x-role":"path"}`: `{"type":"object"}`,
		`3`: `in its results: its schema is 3`, `{"type":"object","properties":{"a\u200b":{}}}`: `in its results: its schema has the name`,
	} {
		got := one(t, &mcp.Tool{Name: "x", OutputSchema: schemaOf(t, schema)}, definition.Options{}).Spec
		if got.Unavailable == "" && string(got.OutputSchema) != want || !strings.Contains(got.Unavailable, want) && got.Unavailable != "" {
			t.Errorf("the output schema %s became %s, unavailable because %q; want %s", schema, got.OutputSchema, got.Unavailable, want)
		}
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","properties":{"path":{"type":"string"},"any":true}}`
	roles := map[string]map[string]string{"x": {"path": "path", "any": "url"}}
	got := one(t, &mcp.Tool{Name: "x", InputSchema: schemaOf(t, schema)}, definition.Options{Roles: roles}).Spec
	if want := `{"properties":{"any":{"x-role":"url"},"path":{"type":"string","x-role":"path"}},"type":"object"}`; string(got.InputSchema) != want {
		t.Errorf("the schema is %s, want %s", got.InputSchema, want)
	}
	roles["x"] = map[string]string{"pth": "path"}
	wrong := one(t, &mcp.Tool{Name: "x", InputSchema: schemaOf(t, schema)}, definition.Options{Roles: roles})
	if wrong.Spec.Unavailable == "" || wrong.Role == nil || wrong.Role.Argument != "pth" || len(wrong.Role.Known) != 2 {
		t.Errorf("%+v, want a tool that is not offered, since its role does not hold", wrong)
	}
}

func FuzzConvert(f *testing.F) {
	f.Add("name", "text", []byte(`{"type":"object","properties":{"a":{"x-role":"secret"}}}`))
	f.Fuzz(func(t *testing.T, name, text string, raw []byte) {
		var schema any
		if err := json.Unmarshal(raw, &schema); err != nil {
			return
		}
		got := one(t, &mcp.Tool{Name: name, Title: text, Description: text, InputSchema: schema, OutputSchema: schema}, definition.Options{}).Spec
		for _, shown := range []string{got.Name, got.Title, got.Description, got.Unavailable} {
			if tool.Visible(shown) != shown {
				t.Errorf("%q has invisible characters", shown)
			}
		}
		var root map[string]any
		if err := json.Unmarshal(got.InputSchema, &root); err != nil || root["type"] != "object" {
			t.Errorf("the schema is %s, %v; want an object", got.InputSchema, err)
		}
	})
}

// TestConvertKeepsTheServersSchema: the MCP client reads keywords in it that the plugin removes.
func TestConvertKeepsTheServersSchema(t *testing.T) {
	t.Parallel()
	schema := func() map[string]any {
		return map[string]any{"type": "object", "allOf": []any{map[string]any{"x-role": "path"}}, "properties": map[string]any{"region": map[string]any{"type": "string", "x-mcp-header": "Region", "title": "a\u200b"}}}
	}
	server := &mcp.Tool{Name: "look", InputSchema: schema(), OutputSchema: schema()}
	if text := string(one(t, server, definition.Options{}).Spec.InputSchema); strings.Contains(text, "x-") {
		t.Errorf("the host gets the schema %s, with keywords of the server", text)
	}
	if diff := cmp.Diff(&mcp.Tool{Name: "look", InputSchema: schema(), OutputSchema: schema()}, server); diff != "" {
		t.Errorf("the tool of the server has changed (-want +got):\n%s", diff)
	}
}
