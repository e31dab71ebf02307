//go:build !race

package grep

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/text/encoding/charmap"

	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/plugins/fs/internal/glob"
	"github.com/toolhost/toolhost/plugins/fs/internal/search"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/roots"
)

// generated is how many patterns are searched for.
const generated = 120

// program returns the path of a program that a test compares with. In CI it has
// to be there.
func program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") != "" {
		tb.Fatalf("%s is missing: %v", name, err)
	}
	if err != nil {
		tb.Skipf("%s is not installed", name)
	}
	return path
}

// For every search and every option, lines and columns are the ones that ripgrep finds: in a
// generated tree, and in Go's own sources.
func TestRipgrepAgrees(t *testing.T) {
	rg := program(t, "rg")
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	day := soak.Seed(t)
	for _, tt := range []struct {
		name, dir string
		options   int // how many for each pattern
		flags     []string
	}{
		{"generated", generateTree(t, carriageReturns), 3, nil},
		{"sources", filepath.Join(strings.TrimSpace(string(goroot)), "src", "net"), 1, nil},
		{"line ends of Windows", generateTree(t, windowsLines), 1, []string{"--crlf"}},
		{"not UTF-8", generateTree(t, latin), 1, []string{"--encoding", "windows-1252"}},
		{"zero bytes", generateTree(t, withZeros), 1, []string{"--text"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			searches, lines := 0, 0
			odd := map[string]bool{}
			if tt.name == "sources" {
				odd = oddFiles(t, tt.dir)
			}
			for seed := range uint64(generated) {
				if !soak.Today(day, int(seed), 4) {
					continue
				}
				w := searchWriter{rand.New(rand.NewPCG(seed, 11))}
				in := Query{Pattern: w.pattern()}
				for range tt.options {
					w.options(&in)
					got := withoutFiles(odd, engineLines(t, tt.dir, in))
					want := withoutFiles(odd, ripgrepLines(t, rg, tt.dir, in, tt.flags))
					if tt.name == "zero bytes" {
						want = untilZero(t, tt.dir, want)
					}
					if in.Word && !in.Literal && strings.ContainsAny(in.Pattern, `\[.`) {
						// If a word may begin in several places, its column may differ.
						withoutColumns(want)
						withoutColumns(got)
					}
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("seed %d: %+v (-ripgrep +search):\n%s", seed, in, diff)
					}
					searches++
					lines += len(got)
				}
			}
			t.Logf("%d searches, %d lines", searches, lines)
			if lines < searches {
				t.Errorf("%d searches found %d lines, so the test shows little", searches, lines)
			}
		})
	}
}

// searchWriter writes patterns and options.
type searchWriter struct{ *rand.Rand }

func (w searchWriter) pick(from ...string) string { return from[w.IntN(len(from))] }

// word returns a word that occurs in the trees often, seldom or never.
func (w searchWriter) word() string {
	return w.pick("func", "return", "err", "Error", "context", "Dial", "tcp", "Listener", "http", "Header", "nil", "if", "the", "connection", "buffer", "0", "Größe", "zebra", "ReadFrom", "go:build", "über", "日本", "$HOME", "-foo", "(x)")
}

func (w searchWriter) pattern() string {
	one, other := regexp.QuoteMeta(w.word()), regexp.QuoteMeta(w.word())
	switch w.IntN(16) {
	case 0, 1:
		return one
	case 14:
		return w.pick("[^a-z]", `\$`, "-", ".", "") + one + w.pick("[^x]", `\(`, `\)\.`, ".", "_")
	case 15:
		return `(?:` + regexp.QuoteMeta(string([]rune(w.word())[:1])) + "|" + one + "|" + other + `)` + w.pick("", "é?")
	case 2:
		return one + `\s+` + other
	case 3:
		return one + `\w*` + w.pick("", other)
	case 4:
		return `(?:` + one + `|` + other + `|` + regexp.QuoteMeta(w.word()) + `)`
	case 5:
		return `\b(?:` + one + `|` + other + `)\b`
	case 6:
		return one + `.*` + other
	case 7:
		return one + `[^a-z]{1,5}` + other
	case 8:
		return `[A-Z]\w+[0-9]`
	case 9:
		return `\w+\d{2,3}`
	case 10:
		return one + `(?:` + w.pick("s", "er", "ing") + `)?`
	case 11:
		return `[a-c]` + w.pick("[aeiou]+", "[^aeiou]{2}", ".") + `[k-z]`
	case 12:
		return w.pick("", `^`) + `\w+ ` + one + w.pick("", `\d*$`)
	default:
		return `\d+\.\d+`
	}
}

func (w searchWriter) options(in *Query) {
	in.Case = w.pick("sensitive", "sensitive", "insensitive", "smart")
	in.Literal = w.IntN(4) == 0
	in.Word = w.IntN(3) == 0
	in.Gitignore = w.IntN(3) > 0
	in.Globs = [][]string{nil, nil, {"*.go"}, {"!*_test.go"}, {"*.go", "!http*"}}[w.IntN(5)]
}

// engineLines returns "path:line:column" of each line that is found.
func engineLines(t *testing.T, dir string, in Query) []string {
	t.Helper()
	pattern, err := in.compile()
	names, namesErr := glob.NewFilter(in.Globs, in.Types)
	r, openErr := roots.Open([]string{dir}, roots.Options{Secrets: []string{}})
	if err := errors.Join(err, namesErr, openErr); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files, err := filetree.Open(r, ".", filetree.Options{Gitignore: in.Gitignore, Skip: names.Skip})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	var mu sync.Mutex
	var all []string
	visits := make([]filetree.Visit, 2)
	for i := range visits {
		s := pattern.Searcher(search.Options{Numbers: true, Charset: searchCharset, Strict: !pattern.Same(textfile.ForeignRunes())})
		visits[i] = func(e filetree.Entry, err error) {
			if err != nil || !e.Type.IsRegular() || !names.Match(e) {
				return
			}
			f, err := e.Open()
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			_, err = s.Search(f, f.Size(), func(l search.Line) bool {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, fmt.Sprintf("%s:%d:%d", e.Path(), l.Number, s.Begin(l.Text)+1))
				return true
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	if err := files.Each(t.Context(), visits); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// ripgrepLines does the same with ripgrep, with options to read a pattern like package regexp.
func ripgrepLines(t *testing.T, rg, dir string, in Query, flags []string) []string {
	t.Helper()
	args := []string{
		"--no-config", "--no-heading", "--with-filename", "--null", "--line-number", "--column", "--hidden", "--no-require-git", "--no-ignore-dot", "--no-ignore-global",
		"--glob", "!.git",
	}
	args = append(args, flags...)
	pattern := in.Pattern
	for flag, set := range map[string]bool{
		"--fixed-strings": in.Literal, "--word-regexp": in.Word, "--no-ignore": !in.Gitignore,
		"--case-sensitive": in.Case == "sensitive", "--ignore-case": in.Case == "insensitive", "--smart-case": in.Case == "smart",
	} {
		if set {
			args = append(args, flag)
		}
	}
	if !in.Literal {
		letters := "[0-9A-Za-z_]"
		if in.Case == "smart" && strings.ToLower(in.Pattern) == in.Pattern {
			letters = "[0-9a-z_]" // a capital would mean something
		}
		pattern = strings.NewReplacer(`\b`, `(?-u:\b)`, `\w`, letters, `\s`, `[\t\n\f\r ]`, `\d`, `[0-9]`).Replace(pattern)
	}
	for _, glob := range in.Globs {
		args = append(args, "--glob", glob)
	}
	cmd := exec.CommandContext(t.Context(), rg, append(args, "--", pattern, ".")...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	var all []string
	for line := range strings.Lines(string(out)) {
		path, rest, ok := strings.Cut(line, "\x00")
		parts := strings.SplitN(rest, ":", 3)
		if !ok || len(parts) < 3 {
			continue // its note about binary files
		}
		all = append(all, strings.TrimPrefix(path, "./")+":"+parts[0]+":"+parts[1])
	}
	slices.Sort(all)
	return all
}

// untilZero leaves out what this program does not search: files with a zero byte
// at the beginning, and of others what begins with the line of the first.
func untilZero(t *testing.T, dir string, lines []string) []string {
	t.Helper()
	ends := map[string]int{}
	return slices.DeleteFunc(lines, func(line string) bool {
		path, rest, _ := strings.Cut(line, ":")
		end, ok := ends[path]
		if !ok {
			text, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			zero := bytes.IndexByte(text, 0)
			switch {
			case zero < 0:
				end = math.MaxInt
			case zero >= textfile.HeadSize:
				end = bytes.Count(text[:zero], []byte{'\n'}) + 1
			}
			ends[path] = end
		}
		number, _, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(number)
		return err != nil || n >= end
	})
}

// oddFiles returns the files on which the two differ on purpose: files in other encodings than
// UTF-8, which this program decodes; files with zero bytes, of which ripgrep searches the
// beginning; and files with Windows line ends.
func oddFiles(t *testing.T, dir string) map[string]bool {
	t.Helper()
	odd := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if !utf8.Valid(text) || bytes.ContainsAny(text, "\x00\r") {
			odd[strings.TrimPrefix(path, dir+"/")] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return odd
}

func withoutFiles(odd map[string]bool, lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		path, _, _ := strings.Cut(line, ":")
		return odd[path]
	})
}

func withoutColumns(lines []string) {
	for i, line := range lines {
		lines[i] = line[:strings.LastIndexByte(line, ':')]
	}
}

// carriageReturns has some within lines, where they are characters like others.
func carriageReturns(w searchWriter, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if w.IntN(8) == 0 {
			line = strings.Replace(line, " ", w.pick("\r", " \r "), 1)
		}
		b.WriteString(strings.Replace(line, "\r\n", "\r.\n", 1))
	}
	return b.String()
}

// windowsLines ends lines as Windows does.
func windowsLines(_ searchWriter, text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// latin is the text in windows-1252.
func latin(_ searchWriter, text string) string {
	text = "Größe\n" + strings.NewReplacer("日本", "\u2020", "ſ", "ÿ", "\u212a", "\u20ac").Replace(text)
	encoded, err := charmap.Windows1252.NewEncoder().String(text)
	if err != nil {
		panic(err)
	}
	return encoded
}

// withZeros has zero bytes, late or at the beginning.
func withZeros(w searchWriter, text string) string {
	switch w.IntN(3) {
	case 0:
		return text + "a \x00 b\n" + text
	case 1:
		return text + strings.Repeat("-\n", textfile.HeadSize) + text + "the \x00 func\n" + text
	default:
		return text
	}
}

// generateTree makes files of words, some of which git ignores.
func generateTree(t *testing.T, change func(searchWriter, string) string) string {
	t.Helper()
	w := searchWriter{rand.New(rand.NewPCG(1, 12))}
	files := map[string]string{
		".gitignore": "*.log\nbuild/\n/top\n", "top/a.go": "func top\n", "sub/top/a.go": "func top\n", "d1/.gitignore": "*.tmp\n!keep.log\n",
		"d1/build/a.go": "func build\n", ".hidden/a.go": "func hidden\n", "bom.go": "\xEF\xBB\xBFfunc first\n", "empty.go": "", "noend.go": "return err\nfunc last",
	}
	for i := range 300 {
		var text strings.Builder
		for range w.IntN(60) {
			for range w.IntN(12) {
				text.WriteString(w.word())
				text.WriteString(w.pick(" ", " ", "\t", "", "(", ").", "_", "12", "345 ", "é", "ſ", "K", "s"))
			}
			text.WriteByte('\n')
		}
		name := fmt.Sprintf("d%d/e%d/file%d%s", i%4, i%9, i, w.pick(".go", ".go", "_test.go", ".txt", ".log", ".tmp"))
		files[name] = change(w, text.String())
	}
	files["d1/keep.log"] = "func keep\n"
	return filetest.Tree(t, files)
}
