package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
)

// plainSchema is that of a result as plugins have them: types, properties and items.
const plainSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,
	"required":["list","name"],"properties":{
		"name":{"type":"string","description":"d"},
		"any":{"type":["null","integer","boolean","string"],"default":1},
		"ratio":{"type":"number"},
		"é":{"type":"integer"},
		"list":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{
			"list":{"type":"array","items":{"type":"integer"}}}}}}}`

// plainResults are texts of which some fit plainSchema.
var plainResults = []string{
	` {"name" : "a\n\u00e9é" , "list" : [ {} , {"list":[]} , {"list":[1,-2,0]} ] , "any" : null , "ratio" : -2.5e3 } `,
	`{"name":"","list":[],"any":true}`, `{"list":[],"name":"","any":false,"é":1}`, `{"name":"","list":[],"any":7}`, `{"name":"","list":[],"any":"x"}`,
	`{"n\u0061me":"","list":[]}`, `{"name":"","list":[],"any":1.0}`, `{"name":"","list":[],"any":1e2}`,
	`{"name":"","list":[],"any":1.5}`, `{"name":"","list":[],"any":[]}`, `{"name":"","list":[],"ratio":"1"}`, `{"name":"","list":[],"ratio":NaN}`,
	`{"name":""}`, `{"list":[]}`, `{}`, `{"name":"","list":[],"more":1}`, `{"name":"","name":"","list":[]}`, `{"name":"","n\u0061me":"","list":[]}`,
	`{"name":"","list":{}}`, `{"name":"","list":[1]}`, `{"name":"","list":[{"list":[""]}]}`, `{"name":null,"list":[]}`, `{"name":true,"list":[]}`, `{"name":"","list":false}`, `[]`, `"a"`, `1`, ``, `null`,
	`{"name":"","list":[]`, `{"name":"","list":[],}`, `{"name":"","list":[{},]}`, `{"name":"","list":[{}`, `{"name":"","list":[]} 1`, `{"name" "","list":[]}`,
	"{\"name\":\"\xff\",\"list\":[]}", "{\"name\":\"\n\",\"list\":[]}", `{"name":"\x","list":[]}`, `{"name":"\ud800","list":[]}`, `{"name":"`, `{"name`,
	`{"name":"","list":[],"any":nul}`, `{"name":"","list":[],"any":01}`, `{"name":"","list":[],"any":-}`, `{"name":"","list":[],"any":` + strings.Repeat("9", 257) + `}`,
}

// inFull is a schema that says the same as another, and more than a plain one can.
func inFull(tb testing.TB, text string) *schema.Output {
	tb.Helper()
	var doc map[string]any
	numbers := json.NewDecoder(strings.NewReader(text))
	numbers.UseNumber() // so that they say the same
	if err := numbers.Decode(&doc); err != nil {
		tb.Fatal(err)
	}
	if doc["minProperties"] == nil {
		doc["minProperties"] = 0
	}
	return compileOutput(tb, string(mustJSON(tb, doc)))
}

// mistake is all that an error of Check says.
func mistake(o *schema.Output, result string) string {
	err := o.Check([]byte(result))
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s: %s: %v", err.Code, err.Message, errors.Unwrap(err))
}

// allocs is how often checking a result that fits asks for memory: never if the
// schema is plain, as no value is made of the text then.
func allocs(tb testing.TB, o *schema.Output, result string) float64 {
	tb.Helper()
	text := []byte(result)
	return testing.AllocsPerRun(10, func() {
		if err := o.Check(text); err != nil {
			tb.Fatalf("Check(%s): %v", result, errors.Unwrap(err))
		}
	})
}

func TestPlainResults(t *testing.T) {
	short, full := compileOutput(t, plainSchema), inFull(t, plainSchema)
	if n := allocs(t, short, plainResults[0]); n != 0 {
		t.Fatalf("%v allocations for a schema that is plain", n)
	}
	for _, result := range plainResults {
		if got, want := mistake(short, result), mistake(full, result); got != want {
			t.Errorf("Check(%s):\n got %s\nwant %s", result, got, want)
		}
	}
}

// TestPlainMembers checks that no property of many is forgotten.
func TestPlainMembers(t *testing.T) {
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
		if got := mistake(o, string(mustJSON(t, values))); got != "" {
			t.Errorf("Check of all %d: %s", n, got)
		}
		for i, name := range required {
			delete(values, name)
			if mistake(o, string(mustJSON(t, values))) == "" {
				t.Errorf("Check without property %s of %d: no error", name, n)
			}
			values[name] = i
		}
	}
}

// TestPlainSchemas checks which schemas are plain: those whose results are checked
// without a value being made of them.
func TestPlainSchemas(t *testing.T) {
	const result = `{"a":{"b":["a text","another"]}}`
	with := func(more string) string {
		return `{"type":"object","additionalProperties":false,"properties":{"a":{"type":"object","additionalProperties":false,
			"properties":{"b":{"type":"array","items":{"type":"string"}` + more + `}}}}}`
	}
	for _, tt := range []struct {
		name, schema string
		want         bool
	}{
		{"plain", with(``), true},
		{"with a title", with(`,"title":"b","examples":[[]],"deprecated":true`), true},
		{"a bound", with(`,"minItems":1`), false},
		{"alternatives", with(`,"anyOf":[true]`), false},
		{"open", strings.ReplaceAll(with(``), `"additionalProperties":false,`, ``), true},
		{"a map", `{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"array"}}}}`, false},
		{"any items", strings.ReplaceAll(with(``), `,"items":{"type":"string"}`, ``), false},
		{"any type", strings.ReplaceAll(with(``), `{"type":"string"}`, `{}`), false},
		{"true", strings.ReplaceAll(with(``), `{"type":"string"}`, `true`), false},
	} {
		n := allocs(t, compileOutput(t, tt.schema), result)
		if got := n == 0; got != tt.want {
			t.Errorf("%s: %v allocations, want none: %t", tt.name, n, tt.want)
		}
	}
}

// FuzzPlain checks that a result fits a plain schema just if it fits one that says
// the same in full.
func FuzzPlain(f *testing.F) {
	for _, result := range plainResults {
		f.Add([]byte(plainSchema), []byte(result))
	}
	for name, result := range map[string]string{`a\\`: `{"a\":1,"b":2}`, `a\n`: "{\"a\n\":1}", `a\u0000`: "{\"a\x00\":1}", `é`: "{\"\xc3\xa9\":1}"} {
		closed := `{"type":"object","additionalProperties":false,"properties":{"` + name + `":{"type":"integer"},"b":{"type":"integer"}}}`
		f.Add([]byte(closed), []byte(result))
	}
	f.Fuzz(func(t *testing.T, text, result []byte) {
		short, err := schema.CompileOutput(text)
		if err != nil || short == nil {
			return
		}
		full := inFull(t, string(text))
		if got, want := mistake(short, string(result)), mistake(full, string(result)); (got == "") != (want == "") {
			t.Fatalf("Check(%q) against %s:\n got %s\nwant %s", result, text, got, want)
		}
	})
}

// BenchmarkOutput checks a result of 1,000 records, against a plain schema and one
// that says the same in full.
func BenchmarkOutput(b *testing.B) {
	const records = `{"type":"object","additionalProperties":false,"required":["commits"],"properties":{"commits":{"type":"array","items":{
		"type":"object","additionalProperties":false,"required":["id","author","subject"],
		"properties":{"id":{"type":"string"},"author":{"type":"string"},"subject":{"type":"string"},"body":{"type":"string"}}}}}}`
	record := `{"id":"9a808d613369c871f18ff08a4f1d73b03e528146","author":"Ada","subject":"change a file","body":"with a line that says why\n"}`
	result := []byte(`{"commits":[` + strings.Repeat(record+",", 999) + record + `]}`)
	for name, o := range map[string]*schema.Output{"plain": compileOutput(b, records), "full": inFull(b, records)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(result)))
			for b.Loop() {
				if err := o.Check(result); err != nil {
					b.Fatal(errors.Unwrap(err))
				}
			}
		})
	}
}
