package mcpserver

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzAppendJSONString compares the output with that of encoding/json.
func FuzzAppendJSONString(f *testing.F) {
	for c := range 256 {
		f.Add([]byte(strings.Repeat("x", c%17) + string([]byte{byte(c)}) + "yz"))
	}
	for _, text := range []string{
		"", "a line of text\n", "\u2028\u2029\u202a", "\ufffd\xff\xe2\x80", "<a&b>", `"quoted"\\`, "日本語 🎉 é",
		"\x1f \x20\x21\x22\x23\x5b\x5c\x5d\x7e\x7f\x80\xa0\xa2\xdc",
	} {
		f.Add([]byte(text))
		f.Add([]byte(strings.Repeat(text, 9)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(string(text)); err != nil {
			t.Fatal(err)
		}
		if got := appendJSONString(nil, text); !bytes.Equal(got, bytes.TrimSuffix(want.Bytes(), []byte("\n"))) {
			t.Errorf("%q is %s, want %s", text, got, want.Bytes())
		}
	})
}

// TestAppendJSONStringAllocates checks that a text full of escapes, such as terminal colors,
// does not allocate for each of them.
func TestAppendJSONStringAllocates(t *testing.T) {
	text := bytes.Repeat([]byte("\x1b\x00\xff\u2028\"\\\n\r\t"), 1000)
	to := make([]byte, 0, 6*len(text)+2)
	if n := testing.AllocsPerRun(10, func() { appendJSONString(to, text) }); n > 0 {
		t.Errorf("%d bytes take %v allocations", len(text), n)
	}
}

func BenchmarkAppendJSONString(b *testing.B) {
	for name, line := range map[string]string{"ASCII": strings.Repeat("0123456789abcde", 4) + "abc\n", "Japanese": strings.Repeat("日本語", 21) + "\n"} {
		text := []byte(strings.Repeat(line, 1<<20/len(line)))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			to := make([]byte, 0, 2*len(text))
			for b.Loop() {
				appendJSONString(to, text)
			}
		})
		b.Run(name+"/encoding/json", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var to bytes.Buffer
			for b.Loop() {
				to.Reset()
				encoder := json.NewEncoder(&to)
				encoder.SetEscapeHTML(false)
				if err := encoder.Encode(string(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
