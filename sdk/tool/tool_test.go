package tool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestParseByteSize(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want tool.ByteSize
		err  string // part of the error; "" means success
	}{
		{in: "0B"},
		{in: "1B", want: 1},
		{in: "1000B", want: 1000},
		{in: "64KiB", want: 64 * tool.KiB},
		{in: "64MiB", want: 64 * tool.MiB},
		{in: "8388607TiB", want: 8388607 * tool.TiB},
		{in: "8388608TiB", err: "larger than any machine has"},
		{in: "9223372036854775807B", want: math.MaxInt64},
		{in: "9223372036854775808B", err: "is not a size"},
		{in: "", err: "is not a size"},
		{in: "64", err: "is not a size"},
		{in: "64MB", err: "is not a size"},
		{in: "MiB", err: "is not a size"},
		{in: "-1MiB", err: "is not a size"},
		{in: "1.5GiB", err: "is not a size"},
		{in: " 1MiB", err: "is not a size"},
		{in: "1mib", err: "is not a size"},
	} {
		got, err := tool.ParseByteSize(tt.in)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("ParseByteSize(%q) = %v, %v, want an error with %q", tt.in, got, err, tt.err)
			}
			continue
		}
		if got != tt.want || err != nil {
			t.Errorf("ParseByteSize(%q) = %v, %v, want %v", tt.in, got, err, tt.want)
		}
	}
}

func TestByteSizeString(t *testing.T) {
	for size, want := range map[tool.ByteSize]string{
		0: "0B", 1: "1B", 1000: "1000B", 1024: "1KiB", 1536: "1536B", 64 * tool.MiB: "64MiB", tool.GiB + tool.MiB: "1025MiB",
		3 * tool.TiB: "3TiB",
	} {
		if got := size.String(); got != want {
			t.Errorf("ByteSize(%d).String() = %q, want %q", int64(size), got, want)
		}
	}
}

// FuzzParseByteSize shows that a parsed size can be formatted and parsed again.
func FuzzParseByteSize(f *testing.F) {
	for _, seed := range []string{"64MiB", "0B", "1000B", "-1B", "99999999TiB", "MiB", "+1B", "1e3B"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		size, err := tool.ParseByteSize(s)
		if err != nil {
			return
		}
		if size < 0 {
			t.Errorf("ParseByteSize(%q) = %d, want no negative size", s, int64(size))
		}
		if again, err := tool.ParseByteSize(size.String()); again != size || err != nil {
			t.Errorf("ParseByteSize(%q) = %v, %v after ParseByteSize(%q) = %v", size.String(), again, err, s, size)
		}
	})
}

func TestTier(t *testing.T) {
	for _, tier := range []tool.Tier{tool.ReadOnly, tool.SideEffecting, tool.Privileged} {
		text, err := tier.MarshalText()
		if err != nil {
			t.Fatalf("MarshalText of %d: %v", int(tier), err)
		}
		var got tool.Tier
		if err := got.UnmarshalText(text); got != tier || err != nil {
			t.Errorf("UnmarshalText(%q) = %v, %v, want %v", text, got, err, tier)
		}
	}
	for _, tier := range []tool.Tier{-1, 0, 4} {
		if text, err := tier.MarshalText(); err == nil {
			t.Errorf("MarshalText of %d = %q, want an error", int(tier), text)
		}
	}
	if _, err := tool.ParseTier("readonly"); err == nil || !strings.Contains(err.Error(), "read_only, side_effecting, privileged") {
		t.Errorf("ParseTier(%q) = %v, want an error that lists the tiers", "readonly", err)
	}
	if tool.ReadOnly >= tool.SideEffecting || tool.SideEffecting >= tool.Privileged {
		t.Error("the tiers are not in order of harm")
	}
}

func TestNames(t *testing.T) {
	long := "a" + strings.Repeat("b", 63)
	for _, tt := range []struct {
		name         string
		tool, plugin bool
	}{
		{"read_file", true, true},
		{"a", true, true},
		{"a1", true, true},
		{long, true, true},
		{long + "b", false, false},
		{"read-file", false, true},
		{"", false, false},
		{"1a", false, false},
		{"_a", false, false},
		{"Read", false, false},
		{"read file", false, false},
		{"read\n", false, false},
		{"ré", false, false},
	} {
		if got := tool.ValidName(tt.name); got != tt.tool {
			t.Errorf("ValidName(%q) = %t, want %t", tt.name, got, tt.tool)
		}
		if got := tool.ValidPluginName(tt.name); got != tt.plugin {
			t.Errorf("ValidPluginName(%q) = %t, want %t", tt.name, got, tt.plugin)
		}
	}
}

func TestClosedLists(t *testing.T) {
	seen := map[tool.Code]bool{}
	for _, c := range tool.Codes() {
		if !c.Valid() || seen[c] || !tool.ValidName(string(c)) {
			t.Errorf("code %q is not valid, or is listed twice", c)
		}
		seen[c] = true
	}
	for _, r := range tool.Roles() {
		if !r.Valid() {
			t.Errorf("role %q is not valid", r)
		}
	}
	if tool.Code("ENOENT").Valid() || tool.Role("file").Valid() {
		t.Error("an unknown code or role is valid")
	}
}

func TestError(t *testing.T) {
	cause := fs.ErrNotExist
	base := tool.Errorf(tool.NotFound, "no file %q: %w", "a", cause)
	for _, tt := range []struct {
		name string
		err  *tool.Error
		want tool.Error
		text string
	}{
		{"plain", base, tool.Error{Code: tool.NotFound, Message: `no file "a": file does not exist`}, "Tool execution failed: no file \"a\": file does not exist"},
		{
			"hint", base.WithHint("use %s", "b"),
			tool.Error{Code: tool.NotFound, Message: `no file "a": file does not exist`, Hint: "use b"},
			"Tool execution failed: no file \"a\": file does not exist\nHint: use b",
		},
		{
			"retry", base.WithRetry(time.Second),
			tool.Error{Code: tool.NotFound, Message: `no file "a": file does not exist`, Retryable: true, RetryAfter: time.Second},
			"Tool execution failed: no file \"a\": file does not exist",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := *tt.err
			if diff := cmp.Diff(tt.want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".cause" }, cmp.Ignore())); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if got := tt.err.ModelText(); got != tt.text {
				t.Errorf("ModelText() = %q, want %q", got, tt.text)
			}
			if !errors.Is(tt.err, cause) {
				t.Errorf("errors.Is(%v, %v) = false", tt.err, cause)
			}
		})
	}
	if base.Hint != "" || base.Retryable {
		t.Errorf("a With method changed its receiver: %+v", base)
	}
}

func TestAsError(t *testing.T) {
	if got := tool.AsError(nil); got != nil {
		t.Errorf("AsError(nil) = %v, want nil", got)
	}
	own := tool.Errorf(tool.Conflict, "changed")
	if got := tool.AsError(fmt.Errorf("write: %w", own)); got != own {
		t.Errorf("AsError of a wrapped Error = %v, want %v", got, own)
	}
	secret := errors.New("open /root/.ssh/id: denied")
	got := tool.AsError(secret)
	if got.Code != tool.Internal || strings.Contains(got.ModelText(), "ssh") || !errors.Is(got, secret) {
		t.Errorf("AsError of another error = %v, want an internal error that tells nothing and keeps its cause", got)
	}
}

func TestErrorJSON(t *testing.T) {
	e := tool.Errorf(tool.Failed, "no").WithCause(errors.New("secret"))
	raw, err := json.Marshal(e)
	if got, want := string(raw), `{"code":"failed","message":"no"}`; got != want || err != nil {
		t.Errorf("JSON = %s, %v, want %s", got, err, want)
	}
}

func TestContextJSON(t *testing.T) {
	raw, err := json.Marshal(tool.Context{User: "ada", Ticket: []byte("secret")})
	if got, want := string(raw), `{"user":"ada"}`; got != want || err != nil {
		t.Errorf("JSON = %s, %v, want %s", got, err, want)
	}
}

func TestResultText(t *testing.T) {
	r := tool.Result{Content: []tool.Content{tool.Text("a"), {Kind: tool.KindImage, Data: []byte{1}}, tool.Text("b")}}
	if got := r.Text(); got != "a\nb" {
		t.Errorf("Text() = %q, want %q", got, "a\nb")
	}
}

func ExampleParseByteSize() {
	size, err := tool.ParseByteSize("64MiB")
	fmt.Println(int64(size), size, err)
	// Output: 67108864 64MiB <nil>
}

func ExampleErrorf() {
	err := tool.Errorf(tool.NotFound, "no file %q", "a.txt").WithHint("list the directory first")
	fmt.Println(err)
	fmt.Println(err.ModelText())
	// Output:
	// not_found: no file "a.txt"
	// Tool execution failed: no file "a.txt"
	// Hint: list the directory first
}

func TestContentJSON(t *testing.T) {
	for kind := tool.KindText; kind <= tool.KindResource; kind++ {
		want := tool.Content{Kind: kind, MediaType: "m", URI: "u", Name: "n", Data: []byte{0xff}}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got tool.Content
		if err := json.Unmarshal(text, &got); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s became %+v, %v; want %+v", text, got, err, want)
		}
	}
	if text, err := json.Marshal(tool.Content{}); err == nil {
		t.Errorf("the JSON of a part without a kind = %s, want an error", text)
	}
	var got tool.Content
	if err := json.Unmarshal([]byte(`{"kind":"film"}`), &got); err == nil {
		t.Errorf("a part of kind film became %+v, want an error", got)
	}
}

func TestContentIsText(t *testing.T) {
	for _, tt := range []struct {
		content tool.Content
		want    bool
	}{
		{tool.Text("a"), true},
		{tool.Content{Kind: tool.KindResource, MediaType: "text/plain"}, true},
		{tool.Content{Kind: tool.KindResource, MediaType: "application/json; charset=utf-8"}, true},
		{tool.Content{Kind: tool.KindResource, MediaType: "Image/SVG+XML"}, true},
		{tool.Content{Kind: tool.KindResource, MediaType: "image/png"}, false},
		{tool.Content{Kind: tool.KindResource, MediaType: "application/jsonp"}, false},
		{tool.Content{Kind: tool.KindResourceLink, MediaType: "text/plain"}, false},
		{tool.Content{Kind: tool.KindImage, MediaType: "image/png"}, false},
		{tool.Content{}, false},
	} {
		if got := tt.content.IsText(); got != tt.want {
			t.Errorf("IsText of a %v of type %q = %t, want %t", tt.content.Kind, tt.content.MediaType, got, tt.want)
		}
	}
}
