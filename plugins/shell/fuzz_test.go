package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Whatever a command writes, its result is text, no longer than it may be, with
// the beginning and the end of both outputs, and as much of them as there is room.
func FuzzResult(f *testing.F) {
	f.Add([]byte("out"), []byte("err"), 1024, 1024, 100)
	f.Add([]byte(strings.Repeat("é", 3000)), []byte{}, 1001, 1500, 7)
	f.Add([]byte(strings.Repeat("\U0001F600", 3000)), []byte("x"), 4097, 3333, 1)
	f.Add([]byte(strings.Repeat("a\xff", 3000)), bytes.Repeat([]byte("\x00\""), 3000), 2048, 4096, 1<<20)
	f.Add([]byte("short"), []byte(strings.Repeat("long", 3000)), 8192, 1<<16-1, 64)
	f.Fuzz(func(t *testing.T, stdout, stderr []byte, budget, keep, chunk int) {
		budget, keep, chunk = 1024+abs(budget)%(1<<16), 1024+abs(keep)%(1<<16), 1+abs(chunk)%(1<<12)
		captures := [2]proc.Capture{}
		for i, output := range [][]byte{stdout, stderr} {
			r := proc.NewRecorder(tool.ByteSize(keep))
			for part := range slices.Chunk(output, chunk) {
				_, _ = r.Write(part) // it never fails
			}
			captures[i] = r.Capture()
		}
		got := outcome{Result: proc.Result{Stdout: captures[0], Stderr: captures[1]}}.result(budget)
		text := ""
		if len(got.Content) > 0 {
			text = string(got.Content[0].Data)
		}
		if len(text) > budget || len(got.Structured) > budget || !utf8.ValidString(text) {
			t.Fatalf("%d and %d bytes for a budget of %d, valid: %t", len(text), len(got.Structured), budget, utf8.ValidString(text))
		}
		var facts execResult
		if err := json.Unmarshal(got.Structured, &facts); err != nil {
			t.Fatal(err)
		}
		if facts.StdoutBytes != int64(len(stdout)) || facts.StderrBytes != int64(len(stderr)) {
			t.Errorf("%d and %d bytes are told, want %d and %d", facts.StdoutBytes, facts.StderrBytes, len(stdout), len(stderr))
		}
		if !utf8.Valid(stdout) || !utf8.Valid(stderr) {
			return
		}
		if strings.Count(text, "\uFFFD") > bytes.Count(slices.Concat(stdout, stderr), []byte("\uFFFD")) {
			t.Error("a character is cut in two")
		}
		for _, output := range [][]byte{stdout, stderr} {
			first, _ := utf8.DecodeRune(output)
			last, _ := utf8.DecodeLastRune(output)
			if len(output) > 0 && (!strings.ContainsRune(text, first) || !strings.ContainsRune(text, last)) {
				t.Errorf("the beginning or the end of %.20q is not in it", output)
			}
		}
		if both := len(stdout) + len(stderr); max(len(stdout), len(stderr)) <= keep && len(text) < min(both, budget-around-2*noteRoom-2*utf8.UTFMax) {
			t.Errorf("%d bytes of text, of %d and a budget of %d", len(text), both, budget)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }

// However a log is written and read, what it gives is what was written there.
func FuzzLog(f *testing.F) {
	f.Add([]byte("0123456789"), uint16(4), uint64(1))
	f.Add(bytes.Repeat([]byte("abc\xff"), 500), uint16(100), uint64(2))
	f.Add(bytes.Repeat([]byte("é"), 500), uint16(2000), uint64(3))
	f.Fuzz(func(t *testing.T, written []byte, size uint16, seed uint64) {
		keep := 1 + int(size)
		random := rand.New(rand.NewPCG(seed, 0))
		l := newLog(keep)
		for done := 0; done < len(written); {
			n := 1 + random.IntN(min(len(written)-done, 2*keep))
			changed := l.read(0, 0).changed
			l.write(written[done : done+n])
			done += n
			select {
			case <-changed:
			default:
				t.Fatal("nobody is told of a change")
			}
			if cap(l.data) > keep {
				t.Fatalf("a log of %d bytes has room for %d", keep, cap(l.data))
			}
			from, most := int64(random.IntN(2*done+2)-done-1), random.IntN(2*keep)
			got := l.read(from, most)
			begin := int(from)
			if begin < 0 {
				begin += done
			}
			begin = min(max(begin, done-keep, 0), done)
			want := written[begin:min(done, begin+most)]
			if !bytes.Equal(got.data, want) || got.from != int64(begin) || got.total != int64(done) || got.over {
				t.Fatalf("read(%d, %d) of %d = %q from %d, want %q from %d", from, most, done, got.data, got.from, want, begin)
			}
		}
	})
}

// Whatever comes where a shell tells how its commands have ended, it is
// understood whole, or not at all.
func FuzzEnding(f *testing.F) {
	f.Add([]byte("ID\x000\x00/a dir\n\x00"))
	f.Add([]byte("ID\x00255\x00\x00ID\x001\x00/\n\x00"))
	f.Add([]byte("ID\x00x\x00/\x00"))
	f.Add([]byte("ID\x000\x00relative\n\x00"))
	f.Add(bytes.Repeat([]byte("x"), 2*maxTold))
	f.Fuzz(func(t *testing.T, told []byte) {
		from := bufio.NewReaderSize(bytes.NewReader(told), maxTold)
		for rest := told; ; {
			e, err := readEnding(from)
			if err != nil {
				return
			}
			if e.dir != "" && !strings.HasPrefix(e.dir, "/") {
				t.Fatalf("the directory is %q", e.dir)
			}
			parts := bytes.SplitN(rest, []byte{0}, 4)
			if len(parts) != 4 || e.order != string(parts[0]) || e.dir != strings.TrimSuffix(string(parts[2]), "\n") {
				t.Fatalf("%q is read as %+v", rest, e)
			}
			rest = parts[3]
		}
	})
}

// Whatever the arguments of a command are, they are refused with a hint at what is
// wrong, or the command gets them as they are.
func FuzzArguments(f *testing.F) {
	f.Add("a b", "A=1", "", "in")
	f.Add("'\"$(id)`\\\n", "LONG_NAME=$x", "sub", "\x00")
	f.Add("a\x00b", "=", "\x00", "")
	f.Add("\u00e9\xff", "LD_PRELOAD=x", "/usr/..", "x\n")
	p, _ := startShell(f, nil)
	f.Fuzz(func(t *testing.T, argument, variable, cwd, stdin string) {
		script := `printf '%s|' "$1"; cat; exec env`
		got := p.Call(t.Context(), "shell_exec", map[string]any{
			"argv": []string{"bash", "-c", script, "bash", argument}, "env": []string{variable}, "cwd": cwd, "stdin": stdin,
		})
		if got.Error != nil {
			if got.Error.Code != tool.InvalidArgument && got.Error.Code != tool.Failed || got.Error.Message == "" {
				t.Errorf("%q, %q, %q: %v", argument, variable, cwd, got.Error)
			}
			return
		}
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case strings.ContainsRune(argument+variable+cwd, 0), !validVariable(name):
			t.Errorf("%q, %q, %q run", argument, variable, cwd)
		case name == "PATH" || len(argument)+len(variable)+len(stdin) > 8<<10: // another cat, or cut
		case !strings.HasPrefix(got.Text(), asText(argument)+"|"+asText(stdin)), !strings.Contains(got.Text()+"\n", asText(variable)+"\n"):
			t.Errorf("%q, %q, %q give %q", argument, variable, stdin, got.Text())
		}
	})
}

// asText is a text as the plugin gets it: JSON has no other.
func asText(s string) string {
	var b strings.Builder
	for _, r := range s { // each wrong byte is one U+FFFD
		b.WriteRune(r)
	}
	return b.String()
}
