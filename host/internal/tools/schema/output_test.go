package schema_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// resultSchema is a schema like those of most plugins: types, properties and items.
const resultSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,
	"required":["list","name"],"properties":{
		"name":{"type":"string","description":"d"},
		"any":{"type":["null","integer","boolean","string"],"default":1},
		"ratio":{"type":"number"},
		"é":{"type":"integer"},
		"list":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{
			"list":{"type":"array","items":{"type":"integer"}}}}}}}`

// fitting are results that fit resultSchema.
var fitting = []string{
	` {"name" : "a\n\u00e9é" , "list" : [ {} , {"list":[]} , {"list":[1,-2,0]} ] , "any" : null , "ratio" : -2.5e3 } `,
	`{"name":"","list":[],"any":true}`, `{"list":[],"name":"","any":false,"é":1}`, `{"name":"","list":[],"any":7}`, `{"name":"","list":[],"any":"x"}`,
	`{"n\u0061me":"","list":[]}`, `{"name":"","list":[],"any":1.0}`, `{"name":"","list":[],"any":1e2}`,
}

// unfitting are results that do not fit resultSchema, or are not JSON.
var unfitting = []string{
	`{"name":"","list":[],"any":1.5}`, `{"name":"","list":[],"any":[]}`, `{"name":"","list":[],"ratio":"1"}`, `{"name":"","list":[],"ratio":NaN}`,
	`{"name":""}`, `{"list":[]}`, `{}`, `{"name":"","list":[],"more":1}`, `{"name":"","name":"","list":[]}`, `{"name":"","n\u0061me":"","list":[]}`,
	`{"name":"","list":{}}`, `{"name":"","list":[1]}`, `{"name":"","list":[{"list":[""]}]}`, `{"name":null,"list":[]}`, `{"name":true,"list":[]}`, `{"name":"","list":false}`, `[]`, `"a"`, `1`, ``, `null`,
	`{"name":"","list":[]`, `{"name":"","list":[],}`, `{"name":"","list":[{},]}`, `{"name":"","list":[{}`, `{"name":"","list":[]} 1`, `{"name" "","list":[]}`,
	"{\"name\":\"\xff\",\"list\":[]}", "{\"name\":\"\n\",\"list\":[]}", `{"name":"\x","list":[]}`, `{"name":"\ud800","list":[]}`, `{"name":"`, `{"name`,
	`{"name":"","list":[],"any":nul}`, `{"name":"","list":[],"any":01}`, `{"name":"","list":[],"any":-}`, `{"name":"","list":[],"any":` + strings.Repeat("9", 257) + `}`,
}

func TestOutput(t *testing.T) {
	o := compileOutput(t, resultSchema)
	for _, result := range fitting {
		if err := o.Check([]byte(result)); err != nil {
			t.Errorf("Check(%s): %v, caused by %v", result, err, errors.Unwrap(err))
		}
	}
	for _, result := range unfitting {
		err := o.Check([]byte(result))
		if err == nil || err.Code != tool.OutputInvalid || errors.Unwrap(err) == nil {
			t.Errorf("Check(%s) = %v, want output_invalid with a cause", result, err)
		}
	}
}

// TestOutputMembers checks that each required property of many is missed.
func TestOutputMembers(t *testing.T) {
	for _, n := range []int{64, 65, 200} {
		properties, required, values := make(map[string]any), []string{}, make(map[string]any)
		for i := range n {
			name := strconv.Itoa(i)
			properties[name], values[name] = map[string]any{"type": "integer"}, i
			required = append(required, name)
		}
		o := compileOutput(t, string(mustJSON(t, map[string]any{
			"type": "object", "additionalProperties": false, "properties": properties, "required": required,
		})))
		if err := o.Check(mustJSON(t, values)); err != nil {
			t.Errorf("Check of all %d: %v", n, err)
		}
		for i, name := range required {
			delete(values, name)
			if o.Check(mustJSON(t, values)) == nil {
				t.Errorf("Check without property %s of %d: no error", name, n)
			}
			values[name] = i
		}
	}
}

// FuzzOutput checks that a result which fits is JSON, and that its canonical text fits too.
func FuzzOutput(f *testing.F) {
	for _, result := range append(fitting, unfitting...) {
		f.Add([]byte(resultSchema), []byte(result))
	}
	for name, result := range map[string]string{`a\\`: `{"a\":1,"b":2}`, `a\n`: "{\"a\n\":1}", `a\u0000`: "{\"a\x00\":1}", `é`: "{\"\xc3\xa9\":1}"} {
		closed := `{"type":"object","additionalProperties":false,"properties":{"` + name + `":{"type":"integer"},"b":{"type":"integer"}}}`
		f.Add([]byte(closed), []byte(result))
	}
	f.Fuzz(func(t *testing.T, text, result []byte) {
		o, err := schema.CompileOutput(text)
		if err != nil || o == nil || o.Check(result) != nil {
			return
		}
		if !json.Valid(result) {
			t.Fatalf("Check(%q) against %s passes, and it is not JSON", result, text)
		}
		value, mistake := schema.Read(result)
		if mistake != nil {
			return // longer than arguments may be
		}
		if err := o.Check(schema.Canonical(value)); err != nil {
			t.Fatalf("Check(%q) against %s passes, and its canonical text does not: %v", result, text, errors.Unwrap(err))
		}
	})
}

// BenchmarkOutput checks a result of 1,000 records.
func BenchmarkOutput(b *testing.B) {
	const records = `{"type":"object","additionalProperties":false,"required":["commits"],"properties":{"commits":{"type":"array","items":{
		"type":"object","additionalProperties":false,"required":["id","author","subject"],
		"properties":{"id":{"type":"string"},"author":{"type":"string"},"subject":{"type":"string"},"body":{"type":"string"}}}}}}`
	record := `{"id":"9a808d613369c871f18ff08a4f1d73b03e528146","author":"Ada","subject":"change a file","body":"with a line that says why\n"}`
	result := []byte(`{"commits":[` + strings.Repeat(record+",", 999) + record + `]}`)
	o := compileOutput(b, records)
	b.SetBytes(int64(len(result)))
	for b.Loop() {
		if err := o.Check(result); err != nil {
			b.Fatal(errors.Unwrap(err))
		}
	}
}
