package sdk

import (
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

type lineRange struct {
	Offset int `json:"offset"`
}

// TestArgumentError checks that errors name arguments as callers know them.
func TestArgumentError(t *testing.T) {
	type item struct {
		Path string `json:"path"`
		lineRange
	}
	type in struct {
		lineRange
		Items []*item          `json:"items"`
		One   struct{ N int8 } `json:"one"`
		Map   map[string]int   `json:"map"`
	}
	for _, tt := range []struct{ arguments, want string }{
		{`{"offset":1e30}`, `argument "offset" cannot be a JSON number`},
		{`{"items":[{"path":"a"},{"offset":"x"}]}`, `argument "items[1].offset" cannot be a JSON string`},
		{`{"items":[{"path":7}]}`, `argument "items[0].path" cannot be a JSON number`},
		{`{"one":{"N":1000}}`, `argument "one.N" cannot be a JSON number`},
		{`{"map":{"a":"x"}}`, `argument "map.a" cannot be a JSON string`},
		{`{"items":7}`, `argument "items" cannot be a JSON number`},
	} {
		_, err := decodeArguments[in]([]byte(tt.arguments), nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "lineRange") {
			t.Errorf("decodeArguments(%s) = %v, want %s", tt.arguments, err, tt.want)
		}
	}
}

// FuzzDecodeArguments shows that no arguments break a plugin.
func FuzzDecodeArguments(f *testing.F) {
	type in struct {
		Text  string             `json:"text"`
		Items []struct{ N *int } `json:"items"`
		Any   map[string]int     `json:"map"`
	}
	for _, seed := range []string{`{}`, ``, `null`, `[]`, `{"text":7}`, `{"items":[{"N":1}],"map":{"a":1}}`, `{"text":"\ud800"}`, "{\"text\":\"\xff\"}", `{`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := decodeArguments[in](raw, defaults{"text": {value: []byte(`"x"`)}, "map": {value: []byte(`{"b":2}`)}}); err != nil && codeOf(err) != tool.InvalidArgument {
			t.Errorf("decodeArguments(%q) = %v, want code %q", raw, err, tool.InvalidArgument)
		}
	})
}
