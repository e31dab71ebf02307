package schema_test

import (
	"testing"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
)

// TestDefaults fills in missing arguments, where the schema sets a default unconditionally, and
// only defaults that fit.
func TestDefaults(t *testing.T) {
	compiled, err := schema.Compile([]byte(`{
		"type":"object",
		"properties":{
			"path":{"type":"string","description":"d","default":"."},
			"limit":{"type":"integer","description":"d","default":10},
			"mode":{"type":"string","description":"d","enum":["a","b"]},
			"opts":{"type":"object","description":"d","properties":{"deep":{"type":"boolean","description":"d","default":true},"n":{"type":"integer","description":"d"}}}
		}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		`{}`:               `{"limit":10,"path":"."}`,
		`{"path":"a"}`:     `{"limit":10,"path":"a"}`,
		`{"opts":{"n":1}}`: `{"limit":10,"opts":{"deep":true,"n":1},"path":"."}`,
		`{"limit":"7"}`:    `{"limit":7,"path":"."}`,
		`{"mode":"a"}`:     `{"limit":10,"mode":"a","path":"."}`,
		`{"opts":{"deep":false},"limit":1,"path":"x"}`: `{"limit":1,"opts":{"deep":false},"path":"x"}`,
	} {
		value, failed := schema.Read([]byte(given))
		if failed != nil {
			t.Fatal(failed)
		}
		got, failed := compiled.Check(value)
		if failed != nil || string(got.Canonical) != want || string(schema.Canonical(got.Values)) != want {
			t.Errorf("Check(%s) = %s, %v; want %s", given, got.Canonical, failed, want)
		}
	}
	misfit, err := schema.Compile([]byte(`{"type":"object","properties":{"n":{"type":"integer","description":"d","minimum":5,"default":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	value, _ := schema.Read([]byte(`{}`))
	if got, failed := misfit.Check(value); failed != nil || string(got.Canonical) != `{}` {
		t.Errorf("Check with a default that does not fit = %s, %v; want {}", got.Canonical, failed)
	}
}
