package launch

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestOrderRoundTrip(t *testing.T) {
	want := &Order{
		Host:   7,
		Path:   Bytes("/opt/\xff/fs"),
		Args:   []Bytes{{}, Bytes("a b"), {0xfe}},
		Env:    []Bytes{Bytes("A=\n")},
		Dir:    Bytes("/"),
		Limits: []Limit{{"core", 4, 0}, {"memory", 2, 1 << 40}},
		Script: true,
	}
	b, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeOrder(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestDecodeOrderRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", "EOF"},
		{"no object", "[1]", "cannot unmarshal array"},
		{"cut off", `{"host":1,`, "unexpected EOF"},
		{"unknown field", `{"none":true}`, `unknown field "none"`},
		{"two orders", `{"host":1,"path":"YQ==","dir":"Lw==","limits":[]} {}`, "something follows"},
		{"no host", `{"path":"YQ==","dir":"Lw=="}`, "is missing"},
		{"relative directory", `{"host":1,"path":"YQ==","dir":"YQ=="}`, "is missing"},
		{"negative limit", `{"host":1,"path":"YQ==","dir":"Lw==","limits":[{"value":-1}]}`, "cannot unmarshal number -1"},
		{"too long", strings.Repeat(" ", MaxOrder+1), "more than 4194304 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := decodeOrder(strings.NewReader(tt.in))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("decodeOrder() = %+v, %v, want %q", o, err, tt.want)
			}
		})
	}
}

func FuzzDecodeOrder(f *testing.F) {
	f.Add([]byte(`{"host":1,"path":"YQ==","args":["",""],"dir":"Lw==","limits":[{"name":"core","resource":4,"value":0}],"mounts":{"minimal":true,"binds":[{"path":"Lw==","pin":true}]},"user":{"uid":1}}`))
	f.Add([]byte(`{"host":1e9,"path":null,"env":[[]],"dir":{}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		o, err := decodeOrder(bytes.NewReader(in))
		if err != nil {
			return
		}
		again, err := o.Encode()
		if err != nil {
			t.Fatalf("encode %+v: %v", o, err)
		}
		got, err := decodeOrder(bytes.NewReader(again))
		if err != nil {
			t.Fatalf("decode %s: %v", again, err)
		}
		got.program()
		if diff := cmp.Diff(o, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("it became another (-first +second):\n%s", diff)
		}
	})
}
