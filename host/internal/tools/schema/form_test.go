package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestCompileForm(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`"f` + strings.Repeat("x", i) + `":{"type":"string","description":"d"},`)
		}
		return `{"type":"object","properties":{` + strings.TrimSuffix(b.String(), ",") + `}}`
	}
	property := func(text string) string { return `{"type":"object","properties":{"a":` + text + `}}` }
	for _, tt := range []struct {
		name, schema string
		want         string // the form, or a part of the error
	}{
		{"no schema", "", `{"properties":{},"type":"object"}`},
		{
			"what a form may have",
			`{"type":"object","required":["a"],"properties":{"a":{"type":"string","title":"A","description":"one","enum":["x","y"],"default":"x"},"b":{"type":"integer","description":"two","minimum":1}}}`,
			`{"properties":{"a":{"default":"x","description":"one","enum":["x","y"],"title":"A","type":"string"},"b":{"description":"two","minimum":1,"type":"integer"}},"required":["a"],"type":"object"}`,
		},
		{
			"keywords of ours and texts that hide",
			property(`{"type":"string","description":"a\u202eb","x-aliases":["z"]}`),
			`{"properties":{"a":{"description":"a\\u202eb","type":"string"}},"type":"object"}`,
		},
		{"not JSON", "{", "not valid JSON"},
		{"no object", `{"type":"string"}`, `the type must be "object"`},
		{"a text of many bytes", property(`{"type":"string","description":"` + strings.Repeat("x", 17<<10) + `"}`), "more than the 16KiB"},
		{"many properties", many(33), "33 properties, more than the 32"},
		{"an object in it", property(`{"type":"object","description":"d"}`), "at /properties/a: a form's property must be of one type"},
		{"a list in it", property(`{"type":"array","description":"d","items":{"type":"string"}}`), "must be of one type"},
		{"two types", property(`{"type":["string","null"],"description":"d"}`), "must be of one type"},
		{"a name that clients cannot show", `{"type":"object","properties":{"a b":{"type":"string","description":"d"}}}`, "must match"},
		{"an answer that hides", property(`{"type":"string","description":"d","enum":["yes\u200b"]}`), "enum has invisible characters"},
		{"a default that hides", property(`{"type":"string","description":"d","default":"\u202e"}`), "default has invisible characters"},
		{"a keyword that clients do not know", property(`{"type":"string","description":"d","not":{"const":"x"}}`), "cannot have the keyword"},
		{"a keyword at the root", `{"type":"object","properties":{},"minProperties":1}`, "at /minProperties"},
		{"what nobody can answer", `{"type":"object","properties":{},"required":["\u202e"]}`, "at /required"},
		{"a format that clients do not know", property(`{"type":"string","description":"d","format":"regex"}`), "the format must be"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			form, err := CompileForm([]byte(tt.schema))
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "input schema") {
					t.Errorf("CompileForm() = %v, want %q", err, tt.want)
				}
				return
			}
			if diff := cmp.Diff(tt.want, string(form.Public())); diff != "" {
				t.Errorf("Public() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormCheck(t *testing.T) {
	form, err := CompileForm([]byte(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer","description":"a number"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ answer, want, mistake string }{
		{`{"n": 3}`, `{"n":3}`, ""},
		{`{"n":"3"}`, `{"n":3}`, ""}, // which loses nothing
		{`{"n":"many"}`, "", "integer"},
		{`{}`, "", "'n'"},
		{`{"n":3,"m":4}`, "", "'m'"},
		{`[`, "", "not valid JSON"},
	} {
		got, err := form.Check([]byte(tt.answer))
		if string(got) != tt.want || (err != nil) != (tt.mistake != "") {
			t.Errorf("Check(%s) = %s, %v; want %s", tt.answer, got, err, tt.want)
		}
		if err != nil && (err.Code != tool.InvalidArgument || !strings.Contains(err.Message, tt.mistake)) {
			t.Errorf("Check(%s) = %v, want %q", tt.answer, err, tt.mistake)
		}
	}
}

func FuzzForm(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string","description":"d"}}}`), []byte(`{"a":"b"}`))
	f.Fuzz(func(t *testing.T, schema, answer []byte) {
		form, err := CompileForm(schema)
		if err != nil {
			return
		}
		if public := string(form.Public()); tool.Visible(public) != public {
			t.Errorf("the form of %q holds what nobody can see: %q", schema, public)
		}
		if values, err := form.Check(answer); err == nil {
			if again, err := form.Check(values); err != nil || string(again) != string(values) {
				t.Errorf("Check(%s) = %s, %v; want what fits to fit again", values, again, err)
			}
		}
	})
}
