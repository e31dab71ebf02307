package process

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
)

func TestDecode(t *testing.T) {
	// tools is a list of tools with as many aliases each.
	tools := func(n, aliases int) proto.Message {
		list := slices.Repeat([]*toolpluginv1.Tool{{Aliases: make([]string, aliases)}}, n)
		return &toolpluginv1.DescribeResponse{Tools: list}
	}
	marshal := func(m proto.Message) []byte {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	part := marshal(&toolpluginv1.CallResponse{Event: &toolpluginv1.CallResponse_Result{Result: &toolpluginv1.Result{
		Content: slices.Repeat([]*toolpluginv1.Content{{}}, maxElements/2),
	}}})
	unknown := protowire.AppendTag(nil, 99, protowire.StartGroupType)
	unknown = protowire.AppendTag(unknown, 99, protowire.EndGroupType)
	for _, tt := range []struct {
		name string
		data []byte
		into proto.Message
		want string // in the error; "" for none
	}{
		{"nothing", nil, new(toolpluginv1.CallResponse), ""},
		{"as many as there may be", marshal(tools(100, 199)), new(toolpluginv1.DescribeResponse), ""},
		{"lists within lists", marshal(tools(100, 200)), new(toolpluginv1.DescribeResponse), "more than 20000 elements"},
		{"a result", part, new(toolpluginv1.CallResponse), ""},
		{"a result in two parts", slices.Concat(part, part), new(toolpluginv1.CallResponse), "more than 20000 elements"},
		{"a later field", unknown, new(toolpluginv1.CallResponse), ""},
		{"half a message", part[:len(part)-1], new(toolpluginv1.CallResponse), "unexpected EOF"},
		{"text that is not UTF-8", protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "\xff"), new(toolpluginv1.DescribeResponse), "cannot be decoded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := decode(tt.data, tt.into)
			if tt.want == "" && err != nil {
				t.Errorf("decode() = %v, want none", err)
			}
			if tt.want != "" && (!errors.Is(err, errNonsense) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("decode() = %v, want errNonsense and %q", err, tt.want)
			}
		})
	}
}
