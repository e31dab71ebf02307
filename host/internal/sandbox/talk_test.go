package sandbox

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestOrderRoundTrip(t *testing.T) {
	want := &order{
		Host:   7,
		Path:   []byte("/opt/\xff/fs"),
		Args:   [][]byte{{}, []byte("a b"), {0xfe}},
		Env:    [][]byte{[]byte("A=\n")},
		Dir:    []byte("/"),
		Limits: Limits{Memory: 3 * tool.MiB, OpenFiles: 5, Core: 1, CPUTime: time.Second},
		Script: true,
	}
	b, err := want.encode()
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
		{"unknown field", `{"root":true}`, `unknown field "root"`},
		{"two orders", `{"host":1,"path":"YQ==","dir":"Lw==","limits":{}} {}`, "something follows"},
		{"no host", `{"path":"YQ==","dir":"Lw=="}`, "is missing"},
		{"relative directory", `{"host":1,"path":"YQ==","dir":"YQ=="}`, "is missing"},
		{"negative limit", `{"host":1,"path":"YQ==","dir":"Lw==","limits":{"core":-1}}`, "limit core is negative"},
		{"too long", strings.Repeat(" ", maxOrder+1), "more than 4194304 bytes"},
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
	f.Add([]byte(`{"host":1,"path":"YQ==","args":["",""],"dir":"Lw==","limits":{"core":0,"memory":1}}`))
	f.Add([]byte(`{"host":1e9,"path":null,"env":[[]],"dir":{}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		o, err := decodeOrder(bytes.NewReader(in))
		if err != nil {
			return
		}
		again, err := o.encode()
		if err != nil {
			t.Fatalf("encode %+v: %v", o, err)
		}
		got, err := decodeOrder(bytes.NewReader(again))
		if err != nil {
			t.Fatalf("decode %s: %v", again, err)
		}
		newProgram(got)
		if got.Limits != o.Limits || !bytes.Equal(got.Path, o.Path) || len(got.Args) != len(o.Args) {
			t.Errorf("%+v became %+v", o, got)
		}
	})
}

// A launcher's notices come from a process that may be broken.
func TestTalkReadsNotices(t *testing.T) {
	report := `{"report":{"layers":["rlimits"]}}` + "\n"
	for _, tt := range []struct {
		name, notices, want string
		is                  error
	}{
		{"executed", report, "", nil},
		{"died", "", "ended before it reported", errNoReport},
		{"refused", `{"failure":{"text":"no such limit","errno":1}}`, "no such limit", syscall.EPERM},
		{"not executed", report + `{"failure":{"text":"exec format error","errno":8,"exec":true}}`, "exec format error", syscall.ENOEXEC},
		{"reported twice", report + report, "reported twice", nil},
		{"empty", "{}", "is empty", nil},
		{"garbage", "panic: oh\n", "read the launcher's report", nil},
		{"garbage after the report", report + "panic", "read the launcher's report", nil},
		{"endless", `{"report":{"layers":["` + strings.Repeat("x", maxNotices), "read the launcher's report", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			orderR, orderW := osPipe(t)
			reportR, reportW := osPipe(t)
			talk := talk{order: orderW, report: reportR}
			defer talk.close()
			sent := make(chan struct{})
			go func() { // ends when all is sent or talk is closed
				defer close(sent)
				_, _ = reportW.WriteString(tt.notices)
				reportW.Close()
			}()
			got, err := talk.run([]byte("order"))
			talk.close()
			<-sent
			orderR.Close()
			if tt.want == "" {
				if err != nil || got.String() != "rlimits" {
					t.Errorf("run() = %v, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("run() = %v, %v, want %q", got, err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("run() = %v, which is not %v", err, tt.is)
			}
		})
	}
}

func osPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}
