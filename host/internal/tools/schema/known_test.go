package schema_test

import (
	"testing"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestKnown checks that a known schema is what Compile makes of it, and that one that Compile
// refuses accepts nothing.
func TestKnown(t *testing.T) {
	const input = `{"type":"object","required":["path"],"properties":{
		"path":{"type":"string","description":"d","x-role":"path"}, "n":{"type":"integer","description":"d","default":3}}}`
	compiled, err := schema.Compile([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	known, err := schema.Known([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	if !known.Same(compiled) || known.Digest() != compiled.Digest() || string(known.Listed()) != string(compiled.Listed()) {
		t.Errorf("Known gives %s, Compile %s", known.Listed(), compiled.Listed())
	}
	if !known.HasRole(tool.RolePath) {
		t.Error("the known schema has lost its roles")
	}
	args, wrong := known.Check(map[string]any{"path": "a"})
	if wrong != nil || string(args.Canonical) != `{"n":3,"path":"a"}` {
		t.Errorf("Check = %s, %v", args.Canonical, wrong)
	}
	if _, wrong := known.Check(map[string]any{}); wrong == nil || wrong.Code != tool.InvalidArgument {
		t.Errorf("Check without a required argument = %v, want invalid_argument", wrong)
	}
	for name, input := range map[string]string{
		"no JSON":           "",
		"an outside $ref":   `{"type":"object","properties":{"a":{"$ref":"other","type":"string","description":"d"}}}`,
		"invisible letters": `{"type":"object","properties":{"a":{"type":"string","description":"d\u200b"}}}`,
		"no description":    `{"type":"object","properties":{"a":{"type":"string"}}}`,
		"no object":         `{"type":"array"}`,
	} {
		if _, err = schema.Known([]byte(input)); err == nil {
			t.Errorf("%s: a known schema is not checked", name)
		}
	}
}

func TestKnownThatIsWrong(t *testing.T) {
	const input = `{"type":"object","properties":{"a":{"type":"string","description":"d","pattern":"["}}}`
	if _, err := schema.Compile([]byte(input)); err == nil {
		t.Fatal("Compile accepts a wrong pattern: the test shows nothing")
	}
	known, err := schema.Known([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	if _, wrong := known.Check(map[string]any{}); wrong == nil {
		t.Error("a schema that does not compile accepts arguments")
	}
	output, err := schema.KnownOutput([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	if wrong := output.Check([]byte(`{}`)); wrong == nil || wrong.Code != tool.OutputInvalid {
		t.Errorf("a result schema that does not compile gives %v, want output_invalid", wrong)
	}
}
