package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The test binary becomes the plugin if its environment says so.
func TestMain(m *testing.M) {
	if os.Getenv("DISK_AS_PLUGIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// workspace holds files of known sizes: the real path of a directory.
func workspace(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{
		"big/file": 1 << 20, "big/inner/file": 64 << 10, "-small\nname/file": 1,
		"hang": 0, "partial": 0, "nothing": 0, "nonsense": 0, "peek": 0, "killed": 0,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": "big", "out": "/etc"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func start(t *testing.T, d disk, c tool.Context) *sdktest.Plugin {
	t.Helper()
	return sdktest.Start(t, newPlugin(d), sdktest.Options{Context: c})
}

// TestUsage runs the real du.
func TestUsage(t *testing.T) {
	dir := workspace(t)
	p := start(t, disk{"/usr/bin/du", time.Minute}, tool.Context{Roots: []string{dir}})
	for _, tt := range []struct {
		args map[string]any // Args would leave out a depth of 0
		want []string
		code tool.Code
	}{
		{args: map[string]any{"path": "."}, want: []string{".", "big", "-small\nname"}},
		{args: map[string]any{"path": ".", "depth": 2}, want: []string{".", "big", "big/inner", "-small\nname"}},
		{args: map[string]any{"path": ".", "depth": 0}, want: []string{"."}},
		{args: map[string]any{"path": "-small\nname", "depth": 5}, want: []string{"-small\nname"}},
		{args: map[string]any{"path": "big/../big/", "depth": 1}, want: []string{"big", "big/inner"}},
		{args: map[string]any{"path": "big/file"}, want: []string{"big/file"}},
		{args: map[string]any{"path": "link", "depth": 1}, want: []string{"link", "link/inner"}},
		{args: map[string]any{"path": dir + "/big", "depth": 0}, want: []string{dir + "/big"}},
		{args: map[string]any{"path": "gone"}, code: tool.NotFound},
		{args: map[string]any{"path": "out"}, code: tool.PermissionDenied},
		{args: map[string]any{"path": "../"}, code: tool.PermissionDenied},
		{args: map[string]any{"path": ""}, code: tool.InvalidArgument},
		{args: map[string]any{"path": ".", "depth": -1}, code: tool.Failed}, // the host refuses it before
	} {
		t.Run(fmt.Sprint(tt.args), func(t *testing.T) {
			r := p.Call(t.Context(), "disk_usage", tt.args)
			got := usageOf(t, r)
			var paths []string
			for i, e := range got.Entries {
				paths = append(paths, e.Path)
				if e.Bytes <= 0 || e.Bytes%1024 != 0 || i > 0 && e.Bytes > got.Entries[i-1].Bytes {
					t.Errorf("%q takes %d bytes in %+v, want KiB, the largest first", e.Path, e.Bytes, got)
				}
			}
			if diff := cmp.Diff(tt.want, paths); diff != "" || codeOf(r) != tt.code || got.Missing != "" {
				t.Errorf("%+v, error %v, want code %q (-want +got):\n%s", got, r.Error, tt.code, diff)
			}
		})
	}
	big := usageOf(t, p.Call(t.Context(), "disk_usage", Args{Path: "big"}))
	if len(big.Entries) != 2 || big.Entries[0].Bytes < 1<<20+64<<10 || big.Entries[1].Bytes < 64<<10 {
		t.Errorf("big = %+v, want at least what its files hold", big)
	}
}

// another builds the other du, of testdata, and returns its path.
func another(t *testing.T) string {
	t.Helper()
	du := filepath.Join(t.TempDir(), "du")
	if out, err := exec.Command("go", "build", "-o", du, "./testdata/du").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return du
}

// TestRules shows what du may examine. The control is a kernel without rules, on which du is
// started all the same.
func TestRules(t *testing.T) {
	_, err := proc.Run(t.Context(), proc.Command{Path: "true", Rules: &proc.Rules{Execute: []string{"/"}, Devices: []string{"/dev"}}})
	none := err != nil && tool.AsError(err).Code == tool.Unavailable
	p := start(t, disk{another(t), time.Minute}, tool.Context{Roots: []string{workspace(t)}})
	got := usageOf(t, p.Call(t.Context(), "disk_usage", Args{Path: "peek"})).Missing
	if want := fmt.Sprintf("own file: true, others: %t, other programs: %t", none, none); got != want {
		t.Errorf("without rules: %t; it says %q, want %q", none, got, want)
	}
}

// TestFailures runs another du.
func TestFailures(t *testing.T) {
	du := another(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := workspace(t)
	for _, tt := range []struct {
		name  string
		d     disk
		path  string
		max   tool.ByteSize
		code  tool.Code
		wants string
	}{
		{name: "no du", d: disk{"/no/such/du", time.Minute}, path: ".", code: tool.Unavailable, wants: "du cannot be executed"},
		{name: "no program", d: disk{plain, time.Minute}, path: ".", code: tool.Unavailable, wants: "exec in its sandbox"},
		{name: "time-out", d: disk{du, 200 * time.Millisecond}, path: "hang", code: tool.Timeout, wants: "within 200ms\nHint: name a directory"},
		{name: "no time at all", d: disk{du, 0}, path: "hang", code: tool.Timeout, wants: "within 0s"},
		{name: "too long", d: disk{"/usr/bin/du", time.Minute}, path: "big", max: 8, code: tool.ResourceExhausted, wants: "the list is too long"},
		{name: "a limit", d: disk{du, time.Minute}, path: "killed", code: tool.ResourceExhausted, wants: "du was ended: killed"},
		{name: "another du", d: disk{du, time.Minute}, path: "nothing", code: tool.Failed, wants: "exit code 1\nHint: du: invalid option"},
		{name: "nonsense", d: disk{du, time.Minute}, path: "nonsense", code: tool.Failed, wants: `"a lot\tnonsense"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := start(t, tt.d, tool.Context{Roots: []string{dir}, MaxOutput: tt.max})
			r := p.Call(t.Context(), "disk_usage", Args{Path: tt.path})
			if codeOf(r) != tt.code || !strings.Contains(r.Error.ModelText(), tt.wants) {
				t.Errorf("disk_usage = %+v, %v, want code %q and %q", r, r.Error, tt.code, tt.wants)
			}
		})
	}
	t.Run("a part", func(t *testing.T) {
		r := start(t, disk{du, time.Minute}, tool.Context{Roots: []string{dir}}).Call(t.Context(), "disk_usage", Args{Path: "partial"})
		want := Usage{
			Entries: []Entry{{"partial", 8 << 10}, {"partial/a", 4 << 10}},
			Missing: "du: cannot read directory 'partial/b': Permission denied",
		}
		if diff := cmp.Diff(want, usageOf(t, r)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if want := "8KiB  partial\n4KiB  partial/a\nNot all is counted: " + want.Missing + "\n"; r.Text() != want {
			t.Errorf("the text is %q, want %q", r.Text(), want)
		}
	})
}

func usageOf(t *testing.T, r tool.Result) (u Usage) {
	t.Helper()
	if r.Error == nil {
		if err := json.Unmarshal(r.Structured, &u); err != nil {
			t.Fatalf("%v in %s", err, r.Structured)
		}
	}
	return u
}

func codeOf(r tool.Result) tool.Code {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// TestContract checks the plugin contract, in this process and in a separate one.
func TestContract(t *testing.T) {
	options := sdktest.Options{
		Context: tool.Context{Roots: []string{workspace(t)}},
		Calls:   []sdktest.Call{{Tool: "disk_usage", Args: Args{Path: ".", Depth: 2}}},
	}
	sdktest.Run(t, newPlugin(disk{"/usr/bin/du", time.Minute}), options)
	options.Env = []string{"DISK_AS_PLUGIN=1"}
	sdktest.RunBinary(t, os.Args[0], options)
}
