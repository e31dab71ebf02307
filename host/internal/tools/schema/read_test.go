package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     any
	}{
		{"nothing", ``, map[string]any{}},
		{"every kind", `{"a":[1,-2.5e3,"x",true,false,null,{}]}`, map[string]any{
			"a": []any{json.Number("1"), json.Number("-2.5e3"), "x", true, false, nil, map[string]any{}},
		}},
		{"escapes", `"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é"`, "\"\\/\b\f\n\r\té😀é"},
		{"a long number", `12345678901234567890.10`, json.Number("12345678901234567890.10")},
		{"empty array", ` [ ] `, []any{}},
		{"64 levels", strings.Repeat("[", 63) + "[]" + strings.Repeat("]", 63), nested(64)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := schema.Read([]byte(tt.in))
			if err != nil {
				t.Fatalf("Read(%s): %v", tt.in, err)
			}
			// Not cmp.Diff, whose time doubles with each level.
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("Read(%s) = %v, want %v", tt.in, got, tt.want)
			}
		})
	}
}

func nested(levels int) any {
	value := []any{}
	for range levels - 1 {
		value = []any{value}
	}
	return value
}

func TestReadRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"blank", ` `, "line 1, column 2 (byte 1): unexpected end of JSON input"},
		{"cut off", `{"path": "READ`, "line 1, column 15 (byte 14): unexpected end of JSON input"},
		{"cut off in an escape", `"\`, "line 1, column 3 (byte 2): unexpected end of JSON input"},
		{"cut off in an object", `{"a":1`, "line 1, column 7 (byte 6): unexpected end of JSON input"},
		{"cut off in an array", `[1`, "line 1, column 3 (byte 2): unexpected end of JSON input"},
		{"trailing comma", "{\n  \"a\": 1,\n}", "line 3, column 1 (byte 12): invalid character '}' looking for beginning of object key string"},
		{"no colon", `{"a" 1}`, "line 1, column 6 (byte 5): invalid character '1' after object key"},
		{"single quotes", `{'a': 1}`, `line 1, column 2 (byte 1): invalid character '\'' looking for beginning of object key string`},
		{"bare word", `{"a": yes}`, "line 1, column 7 (byte 6): invalid character 'y' looking for beginning of value"},
		{"Python", `{"a": None}`, "line 1, column 7 (byte 6): invalid character 'N' looking for beginning of value"},
		{"NaN", `{"a": NaN}`, "line 1, column 7 (byte 6): invalid character 'N' looking for beginning of value"},
		{"infinity", `{"a": -Infinity}`, "line 1, column 8 (byte 7): invalid character 'I' in numeric literal"},
		{"leading zero", `01`, "line 1, column 2 (byte 1): invalid character '1' after top-level value"},
		{"no digit after the point", `1.`, "line 1, column 3 (byte 2): unexpected end of JSON input"},
		{"no exponent", `1e+`, "line 1, column 4 (byte 3): unexpected end of JSON input"},
		{"two values", `{} {}`, "line 1, column 4 (byte 3): invalid character '{' after top-level value"},
		{"a duplicate name", `{"a":1,"a":2}`, `line 1, column 11 (byte 10): duplicate property "a"`},
		{"a duplicate name, escaped", `{"a":1,"\u0061":2}`, `line 1, column 16 (byte 15): duplicate property "a"`},
		{"not UTF-8", "\"a\xff\"", "line 1, column 3 (byte 2): the text is not UTF-8"},
		{"not UTF-8 after an escape", "\"\\na\xff\"", "line 1, column 5 (byte 4): the text is not UTF-8"},
		{"not UTF-8 outside", "\xff", "line 1, column 1 (byte 0): the text is not UTF-8"},
		{"columns are characters", `"é" x`, "line 1, column 5 (byte 5): invalid character 'x' after top-level value"},
		{"half a surrogate pair", `"\ud83d"`, "line 1, column 2 (byte 1): half of a surrogate pair"},
		{"two first halves", `"\ud83d\ud83d"`, "line 1, column 2 (byte 1): half of a surrogate pair"},
		{"unknown escape", `"\x41"`, "line 1, column 3 (byte 2): invalid character 'x' in string escape code"},
		{"not hex", `"\u00g0"`, `line 1, column 6 (byte 5): invalid character 'g' in \u hexadecimal character escape`},
		{"line break in a string", "\"a\nb\"", `line 1, column 3 (byte 2): invalid character '\n' in string literal`},
		{"line break after an escape", "\"\\ta\nb\"", `line 1, column 5 (byte 4): invalid character '\n' in string literal`},
		{"65 levels", strings.Repeat("[", 65) + strings.Repeat("]", 65), "line 1, column 65 (byte 64): nested deeper than 64 levels"},
		{"a huge exponent", `1e1000000000`, "the exponent of 1e1000000000 is larger than 999"},
		{"a huge negative exponent", `1e-1000000000`, "the exponent of 1e-1000000000 is larger than 999"},
		{"a number beyond floating point", `[1e400]`, "the number 1e400 is larger than 1.8e+308"},
		{"a huge number", strings.Repeat("9", 257), "the number 9999999999999999… has more than 256 characters"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := schema.Read([]byte(tt.in))
			if err == nil {
				t.Fatalf("Read(%s) = %v, want an error", tt.in, got)
			}
			if want := "arguments are not valid JSON: " + tt.want; err.Code != tool.InvalidArgument || err.Message != want {
				t.Errorf("Read(%s):\n got %s: %s\nwant %s", tt.in, err.Code, err.Message, want)
			}
		})
	}
}

func TestReadSize(t *testing.T) {
	fits := `"` + strings.Repeat("x", int(schema.MaxArguments)-2) + `"`
	if _, err := schema.Read([]byte(fits)); err != nil {
		t.Errorf("Read of %d bytes: %v", len(fits), err)
	}
	_, err := schema.Read([]byte(fits + " "))
	if err == nil || err.Message != "the arguments have 1048577 bytes, more than the limit of 1048576" {
		t.Errorf("Read of %d bytes: %v, want it refused", len(fits)+1, err)
	}
}

// TestReadCount checks that the largest arguments may hold as many values as
// fit, and that no text makes more of them: each takes memory.
func TestReadCount(t *testing.T) {
	most := "[" + strings.Repeat("0,", int(schema.MaxArguments)/2-2) + "0]"
	if _, err := schema.Read([]byte(most)); err != nil {
		t.Errorf("Read of %d bytes: %v", len(most), err)
	}
	o, err := schema.CompileOutput([]byte(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	refused := o.Check([]byte(`{"a":[` + strings.Repeat("0,", int(schema.MaxArguments)/2) + `0]}`))
	if refused == nil || !strings.Contains(refused.Unwrap().Error(), "more than 524288 values") {
		t.Errorf("Check of too many values: %v, caused by %v", refused, errors.Unwrap(refused))
	}
}

func TestEqual(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true},
		{`100`, `1e2`, true},
		{`1`, `2`, false},
		{`1`, `"1"`, false},
		{`"a"`, `"\u0061"`, true},
		{`null`, `false`, false},
		{`[1,{"a":2}]`, `[1.0,{"a":2e0}]`, true},
		{`[1]`, `[1,1]`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{`[]`, `{}`, false},
	} {
		a, errA := schema.Read([]byte(tt.a))
		b, errB := schema.Read([]byte(tt.b))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if got := schema.Equal(a, b); got != tt.want || schema.Equal(b, a) != got {
			t.Errorf("Equal(%s, %s) = %t, want %t either way", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"path", "limit", "offset", "read_file", "read_files", "write_file", "recursive"}
	for _, tt := range []struct {
		name string
		want []string
	}{
		{"pth", []string{"path"}},
		{"PATH", []string{"path"}},
		{"readfile", []string{"read_file", "read_files"}},
		{"recurse", []string{"recursive"}},
		{"ptah", []string{"path"}},
		{"approved", nil},
		{"", nil},
		{strings.Repeat("path", 100), nil},
	} {
		if diff := cmp.Diff(tt.want, schema.Nearest(tt.name, names)); diff != "" {
			t.Errorf("Nearest(%s) (-want +got):\n%s", tt.name, diff)
		}
	}
}

// FuzzRead checks that reading agrees with encoding/json wherever it accepts,
// and that the canonical text is its own canonical text.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e3,"x",true,null]}`, `"\ud83d\ude00\u0000"`, `{"b":1,"a":{"":2}}`, "[\"\u2028\\/<&>\"]", `-0`, ` 1E5 `, `{"a":1,"a":2}`, `"\ud800"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, mistake := schema.Read(text)
		if mistake != nil {
			return
		}
		canonical := schema.Canonical(value)
		again, mistake := schema.Read(canonical)
		if mistake != nil {
			t.Fatalf("Read of canonical %q: %v", canonical, mistake)
		}
		if !bytes.Equal(schema.Canonical(again), canonical) {
			t.Fatalf("canonical of %q is %q", canonical, schema.Canonical(again))
		}
		if len(text) == 0 {
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var want any
		if err := decoder.Decode(&want); err != nil {
			t.Fatalf("Read accepts %q, encoding/json does not: %v", text, err)
		}
		if !reflect.DeepEqual(value, want) {
			t.Fatalf("Read(%q) = %v, encoding/json reads %v", text, value, want)
		}
	})
}

// FuzzCheck checks that arguments which pass, repaired or not, pass again
// without any repair and stay the same.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"path":"a","limit":"5"}`, `{"file":"a","range":"{\"start\":\"3\"}"}`, `"{\"path\":\"a\"}"`, `{"path":"a","items":{"path":"b"}}`,
		`{"path":"a","globs":"[[\"x\"]]","maybe":"null"}`, `{"path":1,"approved":true}`, `[]`, `{"path":"a","headers":"{\"a\":1}"}`,
	} {
		f.Add([]byte(seed))
	}
	s := compile(f, everything)
	f.Fuzz(func(t *testing.T, text []byte) {
		value, mistake := schema.Read(text)
		if mistake != nil {
			return
		}
		checked, mistake := s.Check(value)
		if mistake != nil {
			if mistake.Code != tool.InvalidArgument || mistake.Message == "" {
				t.Fatalf("Check(%q): %v", text, mistake)
			}
			return
		}
		again, mistake := schema.Read(checked.Canonical)
		if mistake != nil {
			t.Fatalf("Read of checked %q: %v", checked.Canonical, mistake)
		}
		recheck, mistake := s.Check(again)
		if mistake != nil || len(recheck.Repairs) > 0 || !bytes.Equal(recheck.Canonical, checked.Canonical) {
			t.Fatalf("Check(%q) again: %q, %v, %v", checked.Canonical, recheck.Canonical, recheck.Repairs, mistake)
		}
	})
}

// FuzzCompile checks that no schema text makes the compiler panic, and that a
// schema's public form is a schema.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{everything, `{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"type":"object","allOf":[{"$ref":"#"}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := schema.Compile(text)
		if err != nil {
			return
		}
		if _, err := schema.Compile(s.Public()); err != nil {
			t.Fatalf("Compile(%q), the public form of %q: %v", s.Public(), text, err)
		}
		if _, mistake := s.Check(map[string]any{}); mistake != nil && mistake.Code != tool.InvalidArgument {
			t.Fatalf("Check({}) against %q: %v", text, mistake)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	s := compile(b, everything)
	arguments := []byte(`{"path":"` + strings.Repeat("directory/", 90) + `","limit":10,"deep":true,"mode":"text","globs":["*.go","*.md"],"range":{"from":1,"to":2}}`)
	b.SetBytes(int64(len(arguments)))
	for b.Loop() {
		value, err := schema.Read(arguments)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Check(value); err != nil {
			b.Fatal(err)
		}
	}
}
