package reaper_test

import (
	"bytes"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/proc/internal/reaper"
)

func orders() []*reaper.Order {
	return []*reaper.Order{
		{Parent: 1, Path: "/bin/true", Args: []string{"/bin/true"}},
		{
			Parent: 4321, Path: "/bin/\xff", Args: []string{"name", "", "two\nlines", "12"}, Env: []string{"A=", "B=\x01"}, Dir: "/tmp",
			Limits: []reaper.Limit{{Resource: 4}, {Resource: 7, Soft: 1024, Hard: 1<<64 - 1}},
			Rules:  &reaper.Rules{Read: []string{"/a", "/b"}, Devices: []string{"/dev/null"}}, RulesOptional: true, Terminal: true,
		},
		{Parent: 1, Path: "/bin/true", Args: []string{"true"}, Rules: &reaper.Rules{}},
	}
}

func TestOrderArrivesAsItWasSent(t *testing.T) {
	for _, want := range orders() {
		text, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := reaper.DecodeOrder(bytes.NewReader(text))
		if err != nil {
			t.Errorf("DecodeOrder(%q): %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("order (-sent +received):\n%s", diff)
		}
		for n := range text {
			if _, err := reaper.DecodeOrder(bytes.NewReader(text[:n])); err == nil {
				t.Errorf("the first %d bytes of %q are an order", n, text)
			}
		}
	}
}

func FuzzDecodeOrder(f *testing.F) {
	for _, o := range orders() {
		text, err := o.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		order, err := reaper.DecodeOrder(bytes.NewReader(text))
		if err != nil {
			return
		}
		again, err := order.Encode()
		if err != nil {
			t.Fatal(err)
		}
		same, err := reaper.DecodeOrder(bytes.NewReader(again))
		if err != nil || !cmp.Equal(order, same) {
			t.Errorf("%+v comes back as %+v, %v", order, same, err)
		}
	})
}

func TestReportArrivesAsItWasSent(t *testing.T) {
	for _, want := range []reaper.Report{
		{Failed: &reaper.Failure{Step: reaper.StepLimit, Index: 3, Errno: syscall.EPERM}},
		{Failed: &reaper.Failure{Step: reaper.StepRules, Text: "allow /x: no such thing"}},
		{Started: &reaper.Started{Restricted: true}},
		{Started: &reaper.Started{}},
		{Exited: &reaper.Exited{Status: 0x8b}},
		{Ended: &reaper.Ended{Strays: 2, CPUTime: 3 * time.Second, MaxRSS: 4096}},
		{Ended: &reaper.Ended{Dir: "/a dir\n\"\xff"}},
	} {
		got, err := reaper.ParseReport(want.String())
		if err != nil {
			t.Errorf("ParseReport(%q): %v", want, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("report (-sent +received):\n%s", diff)
		}
	}
	for _, line := range []string{"", "\n", "failed\n", "failed limit\n", "failed limit x y z\n", "started maybe\n", "exited\n", "ended 1\n", "what\n"} {
		if got, err := reaper.ParseReport(line); err == nil {
			t.Errorf("ParseReport(%q) = %+v", line, got)
		}
	}
}
