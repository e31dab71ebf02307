package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type item struct {
	Path  string `json:"path" jsonschema:"a path" role:"path"`
	Limit *int   `json:"limit,omitempty" jsonschema:"how much"`
}

type common struct {
	Verbose bool `json:"verbose,omitempty" jsonschema:"say more"`
}

type nested struct {
	Depth int `json:"depth" jsonschema:"how deep" default:"3"`
}

type everything struct {
	common
	Command string            `json:"command" jsonschema:"what to run" role:"command" alias:"cmd, script" raw:"true"`
	Mode    string            `json:"mode,omitempty" jsonschema:"how" enum:"text,binary" default:"text"`
	Level   int8              `json:"level,omitempty" jsonschema:"how much" enum:"1,2,3"`
	Ratio   float64           `json:"ratio" jsonschema:"of what" default:"0.5"`
	Tags    []string          `json:"tags,omitempty" jsonschema:"labels" enum:"a,b"`
	Items   []item            `json:"items,omitempty" jsonschema:"things"`
	Labels  map[string]string `json:"labels,omitempty" jsonschema:"labels by name"`
	Since   time.Time         `json:"since,omitzero" jsonschema:"from when"`
	Data    []byte            `json:"data,omitempty" jsonschema:"bytes"`
	Addr    netip.Addr        `json:"addr,omitzero" jsonschema:"an address"`
	Nested  nested            `json:"nested,omitzero" jsonschema:"more"`
	Skipped func()            `json:"-"`
}

const everythingSchema = `{
	"type": "object", "additionalProperties": false, "required": ["command"],
	"properties": {
		"verbose": {"type": "boolean", "description": "say more"},
		"command": {"type": "string", "description": "what to run", "x-role": "command", "x-aliases": ["cmd", "script"], "x-raw": true},
		"mode": {"type": "string", "description": "how", "enum": ["text", "binary"], "default": "text"},
		"level": {"type": "integer", "description": "how much", "minimum": -128, "maximum": 127, "enum": [1, 2, 3]},
		"ratio": {"type": "number", "description": "of what", "default": 0.5},
		"tags": {"type": "array", "description": "labels", "items": {"type": "string", "enum": ["a", "b"]}},
		"items": {"type": "array", "description": "things", "items": {
			"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
				"path": {"type": "string", "description": "a path", "x-role": "path"},
				"limit": {"type": "integer", "description": "how much"}}}},
		"labels": {"type": "object", "description": "labels by name", "additionalProperties": {"type": "string"}},
		"since": {"type": "string", "format": "date-time", "description": "from when"},
		"data": {"type": "string", "contentEncoding": "base64", "description": "bytes"},
		"addr": {"type": "string", "description": "an address"},
		"nested": {"type": "object", "additionalProperties": false, "description": "more", "properties": {
			"depth": {"type": "integer", "description": "how deep", "default": 3}}}
	}
}`

func TestAddToolSchema(t *testing.T) {
	p := sdk.New("test", "1.0.0")
	sdk.AddTool(p, spec("all"), func(context.Context, *sdk.Call, everything) (string, error) { return "", nil })
	sdk.AddTool(p, spec("none"), func(context.Context, *sdk.Call, struct{}) (struct{}, error) { return struct{}{}, nil })
	sdk.AddTool(p, spec("answers"), func(context.Context, *sdk.Call, struct{}) (*struct {
		Lines []string        `json:"lines"`
		Any   any             `json:"any"`
		Raw   json.RawMessage `json:"raw"`
	}, error,
	) {
		return nil, nil
	})
	if err := p.Err(); err != nil {
		t.Fatalf("Err() = %v", err)
	}
	tools := p.Tools()
	for _, tt := range []struct {
		name      string
		got       json.RawMessage
		wantEqual string
	}{
		{"arguments", tools[0].InputSchema, everythingSchema},
		{"no arguments", tools[1].InputSchema, `{"type": "object", "additionalProperties": false}`},
		// A nil list is written empty.
		{"a result", tools[2].OutputSchema, `{
			"type": "object", "additionalProperties": false, "required": ["lines", "any", "raw"],
			"properties": {"lines": {"type": "array", "items": {"type": "string"}}, "any": true, "raw": true}}`},
	} {
		if diff := cmp.Diff(decode(t, tt.wantEqual), decode(t, string(tt.got))); diff != "" {
			t.Errorf("schema of %s (-want +got):\n%s", tt.name, diff)
		}
	}
	if tools[0].OutputSchema != nil || tools[1].OutputSchema != nil {
		t.Errorf("output schemas of text and nothing = %s, %s, want none", tools[0].OutputSchema, tools[1].OutputSchema)
	}
}

func spec(name string) tool.Spec {
	return tool.Spec{Name: name, Description: "For a test.", Tier: tool.ReadOnly}
}

func decode(t *testing.T, raw string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatalf("decode %s: %v", raw, err)
	}
	return v
}

// with adds a tool with arguments of type In.
func with[In any](s tool.Spec) func(*sdk.Plugin) {
	return func(p *sdk.Plugin) {
		sdk.AddTool(p, s, func(context.Context, *sdk.Call, In) (string, error) { return "", nil })
	}
}

type loop struct {
	Next *loop `json:"next,omitempty" jsonschema:"another"`
}

// TestMistakes shows that each mistake is reported by tool, field and reason.
func TestMistakes(t *testing.T) {
	type named struct {
		common `json:"common"`
	}
	for _, tt := range []struct {
		name string
		add  func(*sdk.Plugin)
		want string // as DefinitionError.Error has it, without the tool
	}{
		{"no description", with[struct {
			A string `json:"a"`
		}](spec("x")), "a: has no description"},
		{"an empty description", with[struct {
			A string `json:"a" jsonschema:""`
		}](spec("x")), "a: the jsonschema tag is \"\""},
		{"no real description", with[struct {
			A string `json:"a" jsonschema:"description=x"`
		}](spec("x")), "a: the jsonschema tag is \"description=x\""},
		{"nested, no description", with[struct {
			A []struct {
				B int `json:"b"`
			} `json:"a" jsonschema:"list"`
		}](spec("x")), "a[].b: has no description"},
		{"any", with[struct {
			A any `json:"a" jsonschema:"x"`
		}](spec("x")), "a: type interface {} can hold anything"},
		{"a function", with[struct {
			A map[string]func() `json:"a" jsonschema:"x"`
		}](spec("x")), "a{}: type func() has no JSON form"},
		{"a channel", with[struct {
			A chan int `json:"a" jsonschema:"x"`
		}](spec("x")), "a: type chan int has no JSON form"},
		{"a complex number", with[struct {
			A complex64 `json:"a" jsonschema:"x"`
		}](spec("x")), "a: type complex64 has no JSON form"},
		{"raw JSON", with[struct {
			A json.RawMessage `json:"a" jsonschema:"x"`
		}](spec("x")), "a: type json.RawMessage has JSON of its own"},
		{"a duration", with[struct {
			A time.Duration `json:"a" jsonschema:"x"`
		}](spec("x")), "a: type time.Duration would be nanoseconds"},
		{"a map by number", with[struct {
			A map[int]string `json:"a" jsonschema:"x"`
		}](spec("x")), "a: a map's keys must be strings"},
		{"a cycle", with[loop](spec("x")), "next: type sdk_test.loop contains itself"},
		{"a quoted number", with[struct {
			A int `json:"a,string" jsonschema:"x"`
		}](spec("x")), `a: the json option "string" is not supported`},
		{"a named embedded struct", with[named](spec("x")), "common: an embedded struct cannot have a JSON name"},
		{"a name twice", with[struct {
			common
			Loud bool `json:"verbose" jsonschema:"x"`
		}](spec("x")), "verbose: two fields have this JSON name"},
		{"an enum that does not fit", with[struct {
			A int `json:"a" jsonschema:"x" enum:"1,two"`
		}](spec("x")), `a: enum value "two" does not fit`},
		{"an enum value twice", with[struct {
			A string `json:"a" jsonschema:"x" enum:"a,a"`
		}](spec("x")), `a: enum value "a" is listed twice`},
		{"a default not in the enum", with[struct {
			A string `json:"a" jsonschema:"x" enum:"a,b" default:"c"`
		}](spec("x")), `a: default "c" is not in the enum ("a", "b")`},
		{"a default of another type", with[struct {
			A bool `json:"a" jsonschema:"x" default:"maybe"`
		}](spec("x")), `a: default "maybe" does not fit: expected bool`},
		{"a default in a list", with[struct {
			A []nested `json:"a" jsonschema:"x"`
		}](spec("x")), "a[].depth: a default cannot be given below a list"},
		{"a bound that is no number", with[struct {
			A int `json:"a" jsonschema:"x" min:"one"`
		}](spec("x")), `a: min "one" does not fit: expected int`},
		{"a length that is no number", with[struct {
			A string `json:"a" jsonschema:"x" max:"-1"`
		}](spec("x")), `a: max "-1" does not fit: expected a whole number`},
		{"bounds of a bool", with[struct {
			A bool `json:"a" jsonschema:"x" max:"1"`
		}](spec("x")), `a: tag "max" needs a number, a string or a list`},
		{"bounds that nothing fits", with[struct {
			A int `json:"a" jsonschema:"x" min:"5" max:"4"`
		}](spec("x")), "a: min 5 is greater than max 4"},
		{"a default out of bounds", with[struct {
			A int `json:"a" jsonschema:"x" min:"5" default:"4"`
		}](spec("x")), `a: default "4" does not fit: `},
		{"bounds by another name", with[struct {
			A int `json:"a" jsonschema:"x" minimum:"5"`
		}](spec("x")), `a: tag "minimum" is not known; did you mean "min"?`},
		{"a bound in a result", func(p *sdk.Plugin) {
			type counted struct {
				N int `json:"n" min:"1"`
			}
			sdk.AddTool(p, spec("x"), func(context.Context, *sdk.Call, struct{}) (counted, error) { return counted{}, nil })
		}, "n: in the result: a result has no bounds"},
		{"an unknown role", with[struct {
			A string `json:"a" jsonschema:"x" role:"file"`
		}](spec("x")), `a: role "file" is not known, expected one of "path", "command"`},
		{"a role of a number", with[struct {
			A int `json:"a" jsonschema:"x" role:"path"`
		}](spec("x")), `a: role "path" needs a string`},
		{"an alias that is taken", with[struct {
			A string `json:"a" jsonschema:"x" alias:"b"`
			B string `json:"b" jsonschema:"x"`
		}](spec("x")), `a: alias "b" is already a name of "b"`},
		{"two raw fields", with[struct {
			A string `json:"a" jsonschema:"x" raw:"true"`
			B string `json:"b" jsonschema:"x" raw:"true"`
		}](spec("x")), "2 fields are marked raw"},
		{"a raw number", with[struct {
			A int `json:"a" jsonschema:"x" raw:"true"`
		}](spec("x")), "a: only a string can be raw"},
		{"raw below the top", with[struct {
			A struct {
				B string `json:"b" jsonschema:"x" raw:"true"`
			} `json:"a" jsonschema:"x"`
		}](spec("x")), "a.b: only a field of the arguments themselves can be raw"},
		{"the role argv of a text", with[struct {
			A string `json:"a" jsonschema:"x" role:"argv"`
		}](spec("x")), `a: role "argv" needs a list of strings`},
		{"an enum of nothing", with[struct {
			A string `json:"a" jsonschema:"x" enum:""`
		}](spec("x")), "a: the enum is empty"},
		{"an empty enum value", with[struct {
			A string `json:"a" jsonschema:"x" enum:"a,,b"`
		}](spec("x")), `a: enum "a,,b" contains an empty value`},
		{"a tag in the plural", with[struct {
			A string `json:"a" jsonschema:"x" enums:"a,b"`
		}](spec("x")), `a: tag "enums" is not known; did you mean "enum"?`},
		{"another plural", with[struct {
			A string `json:"a" jsonschema:"x" aliases:"b"`
		}](spec("x")), `a: tag "aliases" is not known; did you mean "alias"?`},
		{"another name of a tag", with[struct {
			A string `json:"a" description:"x"`
		}](spec("x")), `a: tag "description" is not known; did you mean "jsonschema"?`},
		{"a tag in capitals", with[struct {
			A string `json:"a" jsonschema:"x" Role:"path"`
		}](spec("x")), `a: tag "Role" is not known; did you mean "role"?`},
		{"an embedded pointer", with[struct {
			*common
		}](spec("x")), "the embedded pointer to sdk_test.common, which is not exported"},
		{"a result that is no object", func(p *sdk.Plugin) {
			sdk.AddTool(p, spec("x"), func(context.Context, *sdk.Call, struct{}) (time.Time, error) { return time.Time{}, nil })
		}, "in the result: type time.Time is not written as a JSON object"},
		{"a result with its own JSON", func(p *sdk.Plugin) {
			sdk.AddTool(p, spec("x"), func(context.Context, *sdk.Call, struct{}) (struct{ big.Int }, error) { return struct{ big.Int }{}, nil })
		}, "in the result: type struct { big.Int } writes JSON of its own"},
		{"no function", func(p *sdk.Plugin) {
			sdk.AddTool[struct{}, string](p, spec("x"), nil)
		}, "has no function to run"},
		{"no preview function", func(p *sdk.Plugin) {
			sdk.AddToolWithPreview(p, spec("x"), func(context.Context, *sdk.Call, struct{}) (string, error) { return "", nil }, nil)
		}, "has no function for its preview"},
		{"no struct", with[string](spec("x")), "the arguments must be a struct, not string"},
		{"a wrong result", func(p *sdk.Plugin) {
			sdk.AddTool(p, spec("x"), func(context.Context, *sdk.Call, struct{}) (int, error) { return 0, nil })
		}, "the result cannot be int"},
		{"a default in a result", func(p *sdk.Plugin) {
			sdk.AddTool(p, spec("x"), func(context.Context, *sdk.Call, struct{}) (nested, error) { return nested{}, nil })
		}, "depth: in the result: a result has no defaults"},
		{"a wrong name", with[struct{}](spec("Hello")), "the name is not valid"},
		{"a wrong alias", with[struct{}](tool.Spec{Name: "x", Aliases: []string{"a-b"}}), `the alias "a-b" is not valid`},
		{"no tool description", with[struct{}](tool.Spec{Name: "x", Tier: tool.ReadOnly}), "has no description"},
		{"hidden characters", with[struct{}](tool.Spec{Name: "x", Description: "a\u202eb", Tier: tool.ReadOnly}), "has invisible characters in its description"},
		{"no tier", with[struct{}](tool.Spec{Name: "x", Description: "x"}), "has no tier"},
		{"a tier rule of nothing", with[struct{}](tool.Spec{Name: "x", TierWhen: []tool.TierRule{{Property: "create", Tier: tool.SideEffecting}}}), `a tier rule names "create", which is not an argument; the tool has none`},
		{"a tier rule of another argument", with[common](tool.Spec{Name: "x", TierWhen: []tool.TierRule{{Property: "create", Tier: tool.SideEffecting}}}), `a tier rule names "create", which is not an argument; expected one of "verbose"`},
		{"a schema of its own", with[struct{}](tool.Spec{Name: "x", InputSchema: json.RawMessage(`{}`)}), "has a schema of its own"},
		{"a preview that is not there", with[struct{}](tool.Spec{Name: "x", HasPreview: true}), "sets HasPreview"},
		{"a name taken", func(p *sdk.Plugin) {
			with[struct{}](spec("y"))(p)
			with[struct{}](tool.Spec{Name: "x", Aliases: []string{"y"}})(p)
		}, `the name "y" is already taken by tool "y"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := sdk.New("test", "1.0.0")
			tt.add(p)
			err := p.Err()
			if _, ok := errors.AsType[*sdk.DefinitionError](err); !ok {
				t.Fatalf("Err() = %v, want a DefinitionError", err)
			}
			if !strings.Contains(err.Error(), ": "+tt.want) {
				t.Errorf("Err() = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestMistakesAllAtOnce shows that an author need not find them one by one:
// a type that has no schema hides no other mistake.
func TestMistakesAllAtOnce(t *testing.T) {
	p := sdk.New("Bad Name", "one")
	sdk.Configure[struct{}](p, nil)
	with[struct {
		A any    `json:"a" jsonschema:"x"`
		B string `json:"b"`
		C string `json:"c" jsonschema:"x" role:"nothing"`
		D loop   `json:"d" jsonschema:"x" roles:"path"`
		E string `json:"e" jsonschema:"x" default:"c" enum:"a,b"`
		F func() `json:"f"`
		G string `json:"g" jsonschema:""`
	}](tool.Spec{Name: "x", TierWhen: []tool.TierRule{{Property: "z", Tier: tool.ReadOnly}}})(p)
	got := strings.Split(p.Err().Error(), "\n")
	want := []string{
		"the plugin's name", "the plugin's version",
		"Configure was given no function", "has no description; a model", "has no tier", `a tier rule names "z"`,
		"a: type interface {}", "b: has no description", `c: role "nothing"`, `d: tag "roles"`, "d.next: type sdk_test.loop contains itself",
		`e: default "c" is not in the enum`, "f: has no description", "f: type func()", `g: the jsonschema tag is ""`,
	}
	if len(got) != len(want) {
		t.Fatalf("Err() has %d mistakes, want %d:\n%v", len(got), len(want), p.Err())
	}
	for n := range want {
		if !strings.Contains(got[n], want[n]) {
			t.Errorf("mistake %d = %q, want %q", n, got[n], want[n])
		}
	}
}
