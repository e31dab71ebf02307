package sdk

import (
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

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
		if _, err := decodeArguments[in](raw, []byte(`{"text":"x"}`)); err != nil && codeOf(err) != tool.InvalidArgument {
			t.Errorf("decodeArguments(%q) = %v, want code %q", raw, err, tool.InvalidArgument)
		}
	})
}
