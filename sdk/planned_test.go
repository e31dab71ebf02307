package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

type setArgs struct {
	Value int `json:"value" jsonschema:"the new value" max:"9"`
}

// setting is a planned change of a number.
type setting struct {
	number   *number
	from, to int
}

type number struct{ value, open, closed int }

func (s *setting) State(context.Context) (string, error) { return fmt.Sprint(s.from), nil }

func (s *setting) Show(context.Context) (string, []tool.Content, error) {
	return fmt.Sprintf("Sets %d to %d", s.from, s.to), nil, nil
}

func (s *setting) Apply(context.Context) (string, error) {
	s.number.value = s.to
	return fmt.Sprintf("set to %d", s.to), nil
}

func (s *setting) Close() { s.number.closed++ }

// TestAddPlanned shows that a change is made exactly as its preview showed it, or not at all.
func TestAddPlanned(t *testing.T) {
	n := &number{value: 1}
	p := sdk.New("planned", "1.0.0")
	sdk.AddPlanned(p, spec("set"), func(_ context.Context, _ *sdk.Call, in setArgs) (sdk.Change[string], error) {
		switch {
		case in.Value == n.value:
			return (*setting)(nil), tool.Errorf(tool.Failed, "it is %d already", n.value) // beside an error it is not used
		case in.Value < 0:
			return nil, errors.New("a negative number")
		case in.Value == 0:
			return nil, nil
		}
		n.open++
		return &setting{n, n.value, in.Value}, nil
	})
	running := sdktest.Start(t, p, sdktest.Options{})
	call := func(value int, digest []byte) tool.Result {
		return running.Run(t.Context(), tool.Call{
			Tool: "set", Arguments: fmt.Appendf(nil, `{"value":%d}`, value), Context: tool.Context{PreviewDigest: digest},
		}, tool.Sink{})
	}
	shown, err := running.Preview(t.Context(), "set", setArgs{Value: 2})
	if err != nil || shown.Summary != "Sets 1 to 2" || len(shown.Digest) == 0 || n.value != 1 {
		t.Fatalf("Preview = %+v, %v; the value is %d", shown, err, n.value)
	}
	if got := call(2, shown.Digest); got.Text() != "set to 2" || n.value != 2 {
		t.Errorf("the call = %q, %v", got.Text(), got.Error)
	}
	for _, tt := range []struct {
		name   string
		value  int
		digest []byte
		want   tool.Code
	}{
		{"another state than the preview", 3, shown.Digest, tool.Conflict},
		{"no longer possible", 2, shown.Digest, tool.Conflict},
		{"not possible", 2, nil, tool.Failed},
		{"a mistake of the plugin", -1, nil, tool.Internal},
		{"no plan", 0, nil, tool.Internal},
	} {
		if got := call(tt.value, tt.digest); got.Error == nil || got.Error.Code != tt.want || n.value != 2 {
			t.Errorf("%s: %v, want code %q; the value is %d", tt.name, got.Error, tt.want, n.value)
		}
	}
	if got := call(3, nil); got.Text() != "set to 3" {
		t.Errorf("a call that nobody was asked about = %q, %v", got.Text(), got.Error)
	}
	if n.open == 0 || n.open != n.closed {
		t.Errorf("%d plans were made and %d closed", n.open, n.closed)
	}
}
