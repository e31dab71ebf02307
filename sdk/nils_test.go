package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
)

// Embedded is exported, as encoding/json wants it of a pointer.
type Embedded struct {
	Names []string `json:"names"`
}

type inner struct {
	Labels map[string]string `json:"labels"`
}

type Numbers []int

type allNils struct {
	inner
	*Embedded
	Numbers
	List     []string            `json:"list"`
	Map      map[string][]int    `json:"map"`
	Bytes    []byte              `json:"bytes"`
	Optional []string            `json:"optional,omitempty"`
	Zero     map[string]string   `json:"zero,omitzero"`
	Pointer  *[]string           `json:"pointer"`
	Structs  []inner             `json:"structs"`
	Pointers []*inner            `json:"pointers"`
	ByName   map[string]inner    `json:"by_name"`
	Array    [2][]int            `json:"array"`
	Deep     *struct{ In inner } `json:"deep"`
	Big      big.Int             `json:"big"`
	Any      any                 `json:"any"`
	Raw      json.RawMessage     `json:"raw"`
	Skipped  []string            `json:"-"`
}

// TestNils shows that a result with nils matches its own schema. The contract suite checks each
// result against the schema.
func TestNils(t *testing.T) {
	filled := func() allNils {
		return allNils{
			Embedded: &Embedded{}, Map: map[string][]int{"a": nil}, Pointer: new([]string(nil)), Structs: []inner{{}},
			Pointers: []*inner{nil, {}}, ByName: map[string]inner{"b": {}}, Deep: &struct{ In inner }{},
		}
	}
	const empty = `{"labels":{},"Numbers":[],"list":[],"map":{},"bytes":"","pointer":null,"structs":[],"pointers":[],"by_name":{},
		"array":[[],[]],"deep":null,"big":0,"any":null,"raw":null}`
	const full = `{"labels":{},"names":[],"Numbers":[],"list":[],"map":{"a":[]},"bytes":"","pointer":[],"structs":[{"labels":{}}],
		"pointers":[null,{"labels":{}}],"by_name":{"b":{"labels":{}}},"array":[[],[]],"deep":{"In":{"labels":{}}},"big":0,"any":null,"raw":null}`
	kept := filled() // a value that a tool returns and keeps using
	p := sdk.New("nils", "1.0.0")
	sdk.AddTool(p, spec("zero"), func(context.Context, *sdk.Call, struct{}) (allNils, error) { return allNils{}, nil })
	sdk.AddTool(p, spec("value"), func(context.Context, *sdk.Call, struct{}) (allNils, error) { return kept, nil })
	sdk.AddTool(p, spec("pointer"), func(context.Context, *sdk.Call, struct{}) (*allNils, error) { return &kept, nil })
	sdk.AddTool(p, spec("map"), func(context.Context, *sdk.Call, struct{}) (map[string][]string, error) { return nil, nil })
	want := map[string]string{"zero": empty, "value": full, "pointer": full, "map": `{}`}

	options := sdktest.Options{}
	for name := range want {
		options.Calls = append(options.Calls, sdktest.Call{Tool: name})
	}
	sdktest.Run(t, p, options)
	running := sdktest.Start(t, p, options)
	for name, want := range want {
		got := running.Call(t.Context(), name, nil)
		if got.Error != nil {
			t.Errorf("%s fails: %v", name, got.Error)
			continue
		}
		if diff := cmp.Diff(decode(t, want), decode(t, string(got.Structured))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got, want := fmt.Sprintf("%#v", kept.Structs), fmt.Sprintf("%#v", filled().Structs); got != want {
		t.Errorf("what the tool keeps was changed to %s, want %s", got, want)
	}
	if kept.List != nil || kept.Map["a"] != nil || kept.ByName["b"].Labels != nil || kept.Pointers[1].Labels != nil || kept.Names != nil {
		t.Errorf("what the tool keeps was changed: %+v", kept)
	}
}
