package journal

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/tool"
)

// hide takes secrets out of a text, in quotes too, as the configuration does.
func hide(secrets ...string) func(string) string {
	return func(text string) string {
		for _, s := range secrets {
			if len(s) < 4 {
				text = strings.ReplaceAll(text, `"`+s+`"`, "(hidden)")
				continue
			}
			text = strings.ReplaceAll(text, s, "(hidden)")
		}
		return text
	}
}

// decode reads a body as it would be read back.
func decode(t *testing.T, body []byte) Record {
	t.Helper()
	s := stored{seq: 1, call: "tc_1", body: strings.Replace(string(body), "0000-00-00", "2026-01-01", 1)}
	r, err := s.record()
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return r
}

func TestSecretsAreNotStored(t *testing.T) {
	secrets := []string{"hunter22", `qu"ote\d`, "<angle&>", "two\nlines", "ab", "4711471147", "größe"}
	for _, tt := range []struct{ name, arguments, want string }{
		{"none", `{"a":"b"}`, `{"a":"b"}`},
		{"a plain one", `{"a":"my hunter22!"}`, `{"a":"my (hidden)!"}`},
		{"in a name", `{"hunter22":1}`, `{"(hidden)":1}`},
		{"one that JSON escapes", `{"a":"qu\"ote\\d"}`, `{"a":"(hidden)"}`},
		{"escaped otherwise", `{"a":"\u0068unter22"}`, `{"a":"(hidden)"}`},
		{"escaped for HTML", `{"a":"\u003cangle\u0026\u003e"}`, `{"a":"(hidden)"}`},
		{"two lines", `{"a":["two\nlines",true,null]}`, `{"a":["(hidden)",true,null]}`},
		{"a number", `{"a":4711471147,"b":-1.5e+3}`, `{"a":"(hidden)","b":-1.5e+3}`},
		{"a short one", `{"a":"ab","b":"abc"}`, `{"a":"(hidden)","b":"abc"}`},
		{"not ASCII", `{"a":"größe"}`, `{"a":"(hidden)"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := full()
			in.Arguments = json.RawMessage(tt.arguments)
			in.Error = `no such user: hunter22 qu"ote\d <angle&>`
			in.Client = "two\nlines"
			got := decode(t, encode(in, hide(secrets...)))
			if diff := cmp.Diff(tt.want, string(got.Arguments)); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if want := "no such user: (hidden) (hidden) (hidden)"; got.Error != want || got.Client != "(hidden)" {
				t.Errorf("error %q and client %q, want %q", got.Error, got.Client, want)
			}
			control := decode(t, encode(in, nil))
			if !strings.Contains(control.Error, "hunter22") {
				t.Errorf("control: nobody took the secret out of %q", control.Error)
			}
		})
	}
}

func TestLargeArgumentsAreNotStored(t *testing.T) {
	for _, tt := range []struct {
		size   int
		stored bool
	}{{int(MaxArguments), true}, {int(MaxArguments) + 1, false}} {
		in := full()
		in.Arguments = quoted(strings.Repeat("x", tt.size-2))
		for _, hash := range []string{"sha256:given", ""} {
			in.ArgumentsHash = hash
			got := decode(t, encode(in, nil))
			if (got.Arguments != nil) != tt.stored {
				t.Errorf("arguments of %d bytes are stored: %v, want %v", tt.size, got.Arguments != nil, tt.stored)
			}
			if !tt.stored && (got.ArgumentsSize != int64(tt.size) || len(got.ArgumentsHash) < 10 || hash != "" && got.ArgumentsHash != hash) {
				t.Errorf("of arguments of %d bytes the row says size %d, hash %q", tt.size, got.ArgumentsSize, got.ArgumentsHash)
			}
		}
	}
}

func TestArgumentsThatAreNoJSON(t *testing.T) {
	for _, text := range []string{"{", `{"a":1}{`, "\xff", "NaN", `"a` + "\n" + `"`} {
		in := full()
		in.Arguments = json.RawMessage(text)
		var got string
		if err := json.Unmarshal(decode(t, encode(in, hide("hunter22"))).Arguments, &got); err != nil {
			t.Errorf("arguments %q: %v", text, err)
		}
		if want := string([]rune(text)); got != want {
			t.Errorf("arguments %q are stored as %q", text, got)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	in := full()
	in.Error = strings.Repeat("ü", maxText)
	// A secret at the cut must not leave its first half.
	in.Rule = strings.Repeat("y", maxText-len(cutMark)-3) + "hunter22" + strings.Repeat("z", 100)
	got := decode(t, encode(in, hide("hunter22")))
	if n := len(got.Error); n > maxText || n < maxText-10 || !utf8.ValidString(got.Error) || !strings.HasSuffix(got.Error, cutMark) {
		t.Errorf("an error of %d bytes became one of %d: …%q", len(in.Error), n, got.Error[n-20:])
	}
	if strings.Contains(got.Rule, "hun") {
		t.Errorf("half of a secret was stored: …%q", got.Rule[len(got.Rule)-20:])
	}
	if strings.Contains(decode(t, encode(in, nil)).Rule, "hun") == false {
		t.Error("control: without redaction nothing stands at the cut")
	}
}

func TestUnknownTierIsLeftOut(t *testing.T) {
	for _, tier := range []tool.Tier{-1, 0, 99} {
		in := full()
		in.Tier = tier
		if got := decode(t, encode(in, nil)); got.Tier != 0 {
			t.Errorf("tier %d is stored as %v", int(tier), got.Tier)
		}
	}
}

// FuzzEncode checks that each record can be read back, without any secret.
func FuzzEncode(f *testing.F) {
	f.Add("{\"a\":\"b\"}", "error", "tool", "secret", int64(5))
	f.Add(`["se\u0063ret",1e5]`, "\x00\xff\u2028", "</script>", "secret", int64(-5))
	f.Add(`{"secret":{"secret":"secret"}}`, "secret", "", "1e5", int64(0))
	f.Fuzz(func(t *testing.T, arguments, text, name, secret string, n int64) {
		in := full()
		in.Arguments, in.Error, in.Tool, in.Bytes = json.RawMessage(arguments), text, name, n
		got := decode(t, encode(in, nil))
		if want := string([]rune(text)); len(text) < maxText/4 && got.Error != want {
			t.Errorf("error %q became %q", text, got.Error)
		}
		var want bytes.Buffer // only white space may change
		if json.Compact(&want, in.Arguments) == nil && len(arguments) < int(MaxArguments) && string(got.Arguments) != want.String() {
			t.Errorf("arguments %q became %q", arguments, got.Arguments)
		}
		if got.Bytes != n {
			t.Errorf("bytes %d became %d", n, got.Bytes)
		}
		if len(secret) < 4 || !utf8.ValidString(secret) || strings.Contains("(hidden)"+cutMark, secret) {
			return
		}
		for _, text := range []string{"\ufffd", "(hidden)"} { // taking it out may make another
			if strings.Contains(secret, text[:1]) || strings.Contains(secret, text[len(text)-1:]) {
				return
			}
		}
		var clean any
		arg := decode(t, encode(in, hide(secret))).Arguments
		numbers := json.NewDecoder(bytes.NewReader(arg))
		numbers.UseNumber() // some are too large for a float64
		if err := numbers.Decode(&clean); len(arg) > 0 && err != nil {
			t.Fatalf("arguments %q: %v", arg, err)
		}
		if leaks(clean, secret) {
			t.Errorf("%q is in %s", secret, arg)
		}
	})
}

// leaks reports whether a string or a name in v holds the secret.
func leaks(v any, secret string) bool {
	switch v := v.(type) {
	case json.Number:
		return strings.Contains(v.String(), secret)
	case string:
		return strings.Contains(v, secret)
	case []any:
		for _, e := range v {
			if leaks(e, secret) {
				return true
			}
		}
	case map[string]any:
		for name, e := range v {
			if strings.Contains(name, secret) || leaks(e, secret) {
				return true
			}
		}
	}
	return false
}

// TestTextsAreAll looks for texts of a row that would be stored without being
// redacted and cut.
func TestTextsAreAll(t *testing.T) {
	var r Record
	listed := map[*string]bool{}
	for _, text := range r.texts() {
		listed[text] = true
	}
	for field, value := range reflect.ValueOf(&r).Elem().Fields() {
		text, ok := reflect.TypeAssert[*string](value.Addr())
		given := field.Name != "Call" && field.Name != "Prev" && field.Name != "Hash" // an id, and fields that the journal sets
		if ok && listed[text] != given {
			t.Errorf("that %s is among the texts is %t, want %t", field.Name, listed[text], given)
		}
	}
}
