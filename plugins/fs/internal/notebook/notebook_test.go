package notebook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	image := strings.Repeat("A", 400)
	for _, tt := range []struct {
		name, text, want, language string
		cells                      int
	}{
		{
			name: "cells", cells: 3, language: "python",
			text: `{"cells":[
				{"cell_type":"markdown","id":"a","metadata":{},"source":["# Title\n","text"]},
				{"cell_type":"code","execution_count":7,"metadata":{},"outputs":[
					{"name":"stdout","output_type":"stream","text":["1\n","2\n"]},
					{"name":"stderr","output_type":"stream","text":"careful\n"},
					{"data":{"image/png":"` + image + `\n","text/plain":["<Figure>"]},"metadata":{},"output_type":"display_data"},
					{"data":{"text/html":"<b>x</b>","application/json":{"a":[1]}},"execution_count":7,"metadata":{},"output_type":"execute_result"}],
				 "source":"print(1)\n"},
				{"cell_type":"raw","source":[]}],
				"metadata":{"kernelspec":{"name":"x"},"language_info":{"name":"python","version":"3"}},"nbformat":4,"nbformat_minor":5}`,
			want: "[cell 1, markdown]\n# Title\ntext\n\n" +
				"[cell 2, code, run 7]\nprint(1)\n[output]\n1\n2\n[stderr]\ncareful\n[output]\n<Figure>\n[output: image/png, 300 bytes]\n" +
				"[output: text/html, 8 bytes]\n[output: application/json, 9 bytes]\n\n[cell 3, raw]\n\n",
		},
		{
			name: "errors", cells: 2,
			text: `{"cells":[{"cell_type":"code","execution_count":null,"source":"1/0","outputs":[
				{"output_type":"error","ename":"E","evalue":"no","traceback":["\u001b[0;31mE\u001b[0m\n","at 1"]}]},
				{"cell_type":"code","source":null,"outputs":[{"output_type":"error","ename":"E","evalue":"no","traceback":[]}]}]}`,
			want: "[cell 1, code]\n1/0\n[error]\nE\nat 1\n\n[cell 2, code]\n[error]\nE: no\n\n",
		},
		{name: "none", text: `{"cells":[]}`},
		{name: "a type of its own", cells: 1, text: `{"cells":[{"cell_type":"a\nb\u202e"}]}`, want: "[cell 1, \"a\\nb\\u202e\"]\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Read(strings.NewReader(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got.Text)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if got.Cells != tt.cells || got.Shown != tt.cells || got.Language != tt.language {
				t.Errorf("%d cells, %d shown, in %q, want %d in %q", got.Cells, got.Shown, got.Language, tt.cells, tt.language)
			}
		})
	}
}

// Notebooks with other values than expected, and hostile ones, have errors that tell the place.
func TestReadMalformed(t *testing.T) {
	deep := strings.Repeat("[", 1<<20)
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "its JSON ends at byte 0, in the middle of a value"},
		{"no object", "[]", "the notebook is a list, expected an object"},
		{"no cells", `{"nbformat":3,"worksheets":[{"cells":[]}]}`, "the notebook has no cells, expected one of format 4"},
		{"cells as text", `{"cells":"x"}`, "cells is a string, expected a list"},
		{"a cell as number", `{"cells":[{},1]}`, "cells[1] is a number, expected an object"},
		{"source as number", `{"cells":[{"source":1}]}`, "cells[0].source is a number, expected a string"},
		{"a part as object", `{"cells":[{"source":["a",{}]}]}`, "cells[0].source[1] is an object, expected a string"},
		{"type as boolean", `{"cells":[{"cell_type":true}]}`, "cells[0].cell_type is a boolean, expected a string"},
		{"count as text", `{"cells":[{"execution_count":"1"}]}`, "cells[0].execution_count is a string, expected a number"},
		{"outputs as object", `{"cells":[{"outputs":{}}]}`, "cells[0].outputs is an object, expected a list"},
		{"an output as null", `{"cells":[{"outputs":[null]}]}`, "cells[0].outputs[0] is null, expected an object"},
		{"data as list", `{"cells":[{"outputs":[{"data":[]}]}]}`, "cells[0].outputs[0].data is a list, expected an object"},
		{"cut", `{"cells":[{"source":"a`, "its JSON ends at byte 20, in the middle of a value"},
		{"cut after a field", `{"cells":[{"source"`, "its JSON ends at byte 19, in the middle of a value"},
		{"two", `{"cells":[]} {}`, "its JSON has more than one value"},
		{"deep", `{"x":` + deep, "its JSON is nested more than 100 deep at byte 106"},
		{"deep in an output", `{"cells":[{"outputs":[{"data":{"a/b":` + deep, "its JSON is nested more than 100 deep at byte 138"},
		{"deep in a source", `{"cells":[{"source":` + deep, "cells[0].source[0] is a list, expected a string"},
		{"no JSON", "{cells", "its JSON is wrong at byte 1: invalid character 'c'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Read(strings.NewReader(tt.text)); err == nil || err.Error() != tt.want {
				t.Errorf("Read = %v, want %s", err, tt.want)
			}
		})
	}
}

// The text is bounded, whatever the notebook has most of, and says what it lacks.
func TestReadIsBounded(t *testing.T) {
	many := func(item string, n int) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }
	for _, tt := range []struct {
		name, text string
		most       int
		want       string // in the text
		more       bool   // cells that are not shown
	}{
		{name: "cells", text: `{"cells":` + many("{}", 400_000) + `}`, most: maxText + 100, more: true},
		{name: "outputs", text: `{"cells":[{"outputs":` + many(`{"text":"x"}`, 50_000) + `}]}`, most: 70 << 10, want: "more outputs]\n"},
		{name: "empty outputs", text: `{"cells":[{"outputs":` + many(`{}`, 50_000) + `}]}`, most: 100},
		{name: "a long output", text: `{"cells":[{"outputs":[{"text":"` + strings.Repeat("é", 1<<20) + `"}]}]}`, most: 9 << 10, want: fmt.Sprintf("é\n[%d more bytes]\n", 2<<20-maxOutput)},
		{name: "parts", text: `{"cells":[{"source":` + many(`"é"`, 600_000) + `}]}`, most: maxSource + 100, want: fmt.Sprintf("é\n[%d more bytes]\n", 1_200_000-maxSource)},
		{name: "media types", text: `{"cells":[{"outputs":[{"data":{` + strings.Repeat(`"a/b":"",`, 50_000) + `"c/d":""}}]}]}`, most: 10 << 10},
		{name: "errors of one output", text: `{"cells":[{"outputs":[{` + strings.Repeat(`"ename":"a",`, 500_000) + `"evalue":"b"}]}]}`, most: 100, want: "a: b\n"},
		{name: "names", text: `{"cells":[{"cell_type":"` + strings.Repeat("\\n", 1<<20) + `","outputs":[{"data":{"` + strings.Repeat("\\n", 1<<20) + `":1}}]}]}`, most: 300},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Read(strings.NewReader(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Text) > tt.most || !strings.Contains(string(got.Text), tt.want) || got.Shown < got.Cells != tt.more {
				t.Errorf("%d bytes of %d cells, %d shown, end in %q, want at most %d with %q", len(got.Text), got.Cells, got.Shown, got.Text[max(0, len(got.Text)-100):], tt.most, tt.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"cells":[{"cell_type":"code","source":["a"],"outputs":[{"text":"b"}]}]}`, `{"cells":[{"outputs":[{"data":{"image/png":"AA=="}}]}],"metadata":{}}`, `{"cells":[}`, `[[[`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := Read(strings.NewReader(text)); err == nil && got.Shown > got.Cells {
			t.Errorf("%d of %d cells are shown", got.Shown, got.Cells)
		}
	})
}
