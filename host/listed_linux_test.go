package main

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/soak"
)

// TestListedPrograms runs the programs that the host lets read unasked, with each option that it
// knows (a quarter of them each day) and with random words, as far as the default configuration allows
// them. It looks for effects that no person has approved: a file that changed, or a secret that was
// opened or shown.
func TestListedPrograms(t *testing.T) {
	t.Parallel()
	h := serveShipped(t)
	w := newGuarded(t, h.dir)
	seed := soak.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	programs := listedPrograms(t)
	var known, others []string
	for _, p := range programs {
		known = append(known, p.each(seed)...)
	}
	for range soak.Rounds(75, 20_000) {
		others = append(others, programs[random.IntN(len(programs))].random(random))
	}
	batches := slices.Collect(slices.Chunk(known, 20))
	batches = slices.AppendSeq(batches, slices.Chunk(others, 4)) // one that is refused when it runs ends a batch
	allowed, ended := 0, 0
	for _, batch := range batches {
		if !h.unasked(t, strings.Join(batch, "; ")) {
			batch = slices.DeleteFunc(batch, func(line string) bool { return !h.unasked(t, line) })
		}
		if len(batch) == 0 {
			continue
		}
		allowed += len(batch)
		outcome := h.post(t, "shell_exec", map[string]any{"command": strings.Join(batch, "; ") + "; echo ended", "timeout": 60})
		if strings.Contains(asJSON(outcome), `ended\n`) {
			ended += len(batch)
		}
		if why := w.effect(t, asJSON(outcome)); why != "" {
			t.Fatalf("%s, after one of these ran unasked:\n%s", why, strings.Join(batch, "\n"))
		}
	}
	t.Logf("%d programs, %d lines with one option, %d others; %d of them allowed, %d run to their end", len(programs), len(known), len(others), allowed, ended)
	if allowed < len(known)*2/3 || ended < allowed*3/4 {
		t.Error("too few ran: the test shows little")
	}
	w.control(t)
}

// guarded is a workspace with secrets in it and beside it.
type guarded struct {
	dir, before string
	// secrets is the descriptor that reports which secrets were opened.
	secrets int
}

// newGuarded fills the directory ws in dir: files, links, secrets, and a repository that holds a
// secret of its own.
func newGuarded(t *testing.T, dir string) *guarded {
	t.Helper()
	w := &guarded{dir: dir}
	ws := filepath.Join(dir, "ws")
	for name, text := range map[string]string{
		"ws/a": "n 1\nn 2\n", "ws/x": "n 1\nz 3\n", "ws/j.json": `{"n":[1,2]}`, "ws/src/b": "n\n", "ws/src/c.go": "package n\n", "ws/sub/a": "n\n",
		"ws/.gitignore": ".env\nenv\n", "ws/names": "a\n.env\n", "ws/-n": "n\n", "ws/.env": "n " + canary, "ws/src/.env": "n " + canary, "ws/sub/.env": "n " + canary, "out/secret": "n " + canary, "out/a": "n " + canary,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := `git init -q && git config user.name n && git config user.email n@localhost && git add . && git add -f src/.env && git commit -qm n && git tag v1 &&
		echo changed >>src/.env && echo n >>a && ln -s ../out link && ln -s ../out/secret file && ln -s .env env`
	make := exec.CommandContext(t.Context(), "sh", "-ec", script)
	make.Dir = ws
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var err error
	if w.secrets, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(w.secrets) })
	for _, name := range []string{"ws/.env", "ws/sub/.env", "out/secret", "out/a"} { // git counts the lines of src/.env
		if _, err := unix.InotifyAddWatch(w.secrets, filepath.Join(dir, name), unix.IN_ACCESS|unix.IN_OPEN); err != nil {
			t.Fatal(err)
		}
	}
	w.before = w.state(t)
	return w
}

// state describes all files, and those of git that are not a cache.
func (w *guarded) state(t *testing.T) string {
	t.Helper()
	return state(t, filepath.Join(w.dir, "ws")) + state(t, filepath.Join(w.dir, "out")) +
		readFile(t, filepath.Join(w.dir, "ws/.git/config")) + readFile(t, filepath.Join(w.dir, "ws/.git/HEAD")) + state(t, filepath.Join(w.dir, "ws/.git/refs"))
}

// effect returns what happened since the last call that must not happen unasked; "" if nothing did.
func (w *guarded) effect(t *testing.T, shown string) string {
	t.Helper()
	buffer := make([]byte, 4096)
	if n, _ := unix.Read(w.secrets, buffer); n > 0 {
		return "a secret was opened"
	}
	if strings.Contains(shown, canary) {
		return "a secret was shown: " + shown
	}
	after := w.state(t)
	if after == w.before {
		return ""
	}
	before := w.before
	w.before = after
	return "files changed:\n" + after + "\nbefore:\n" + before
}

// control runs uses of listed programs that the host asks about, and checks that each would be
// found.
func (w *guarded) control(t *testing.T) {
	t.Helper()
	for _, line := range []string{
		"sort -o new a", "uniq a x", "xxd a new", "grep -rn n .", "grep -d recurse n src", "rg -uu n", "rg -g .env n", "cat link/a", "wc -c file", "sed -n 'w new2' a", "sed -i s/n/m/ a",
		"find src -name c.go -delete", "find . -name .env -exec wc {} +", "diff -r src sub", "git log -p", "git show v1 -- src/.env", "git branch new", "git tag v2", "git grep n4ry", "git diff src",
		"echo a >new3", "du --files0-from=.env", "file -L env", "date +n >new4", "git config a.b c", "jq --rawfile s .env '$s' j.json",
	} {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
		cmd.Dir = filepath.Join(w.dir, "ws")
		out, _ := cmd.CombinedOutput()
		if w.effect(t, string(out)) == "" {
			t.Errorf("%s has an effect, but none is found: %s", line, out)
		}
	}
}

// listedProgram is an entry of programs.txt: a program or a git command that only reads.
type listedProgram struct {
	name   string
	words  []string // options, each with a value if it has one
	plain  string   // letters without a value
	places []string // operands with which it runs
}

// operandsOf are harmless operands of what takes other ones than files.
//
//nolint:gochecknoglobals // a table
var operandsOf = map[string][]string{
	"paths": {"a", "src x"}, "pattern": {"n a", "n src/b x"}, "filter": {". j.json", ".n"}, "anything": {"a", "a b"}, "": {"", ""},
	"sleep": {"0", "0.01"}, "tr": {"a b", "a b"}, "seq": {"3", "1 3"}, "which": {"ls", "ls wc"}, "id": {"", "root"}, "diff": {"a x", "a a"}, "cmp": {"a x", "a x"}, "comm": {"a x", "x x"},
	"join": {"a x", "x x"}, "uniq": {"a", "x"}, "xxd": {"a", "x"}, "xargs": {"", "wc"}, "realpath": {"a", "link"}, "readlink": {"a", "link"}, "find": {".", "src -name b"}, "echo": {"-n", "a b"},
	"git blame": {"a", "src/b"}, "git log": {"", "-- a"}, "git show": {"HEAD", "v1"}, "git diff": {"", "HEAD -- a"}, "git merge-base": {"HEAD v1", "v1 HEAD"}, "git grep": {"n", "n a"},
	"git ls-tree": {"HEAD", "v1"}, "git describe": {"", "HEAD"}, "git rev-parse": {"HEAD", "v1"}, "git shortlog": {"HEAD", "v1"},
}

// builtins are programs of the list that the shell itself is, or that other tests try.
//
//nolint:gochecknoglobals // a table
var builtins = []string{"cd", "read", "git", "go", "[", "test", "printf", "sed", "date", "tail"}

// listedPrograms reads the list by itself. In CI each program must be there.
func listedPrograms(t *testing.T) []*listedProgram {
	t.Helper()
	var all []*listedProgram
	long := map[string][]string{}
	var p *listedProgram
	lines := bufio.NewScanner(bytes.NewReader([]byte(readFile(t, "internal/decide/command/programs.txt"))))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case lines.Text()[0] != ' ':
			p = nil
			if fields[0] == "git" || fields[0] == "program" && !slices.Contains(builtins, fields[1]) {
				p = &listedProgram{name: strings.TrimPrefix(strings.Join(fields[:2], " "), "program "), places: operandsOf[""]}
				if known, ok := operandsOf[p.name]; ok {
					p.places = known
				}
				program, _, _ := strings.Cut(p.name, " ")
				if _, err := exec.LookPath(program); err == nil {
					all = append(all, p)
				} else if os.Getenv("CI") != "" {
					t.Errorf("%s is listed, but cannot be tried: %v", program, err)
				}
			}
		case p == nil:
		case fields[0] == "operands" && operandsOf[p.name] == nil:
			p.places = operandsOf[fields[1]]
		case fields[0] == "flags":
			p.plain = fields[1]
			for _, letter := range fields[1] {
				p.words = append(p.words, "-"+string(letter))
			}
		case fields[0] == "values" || fields[0] == "optional":
			for _, letter := range fields[1] {
				p.words = append(p.words, "-"+string(letter)+"1")
				if fields[0] == "values" {
					p.words = append(p.words, "-"+string(letter)+" a")
				}
			}
		case fields[0] == "also":
			p.words = append(p.words, long[strings.Join(fields[1:], " ")]...)
		case fields[0] == "long":
			for _, name := range fields[1:] {
				word := "--" + name
				if strings.HasSuffix(name, "=") {
					word += "1"
				}
				p.words, long[p.name] = append(p.words, word), append(long[p.name], word)
			}
		}
	}
	return all
}

// each returns a line for each option of the day, with one of the operands.
func (p *listedProgram) each(seed uint64) []string {
	lines := []string{p.name + " " + p.places[0], p.name + " " + p.places[1]}
	for i, word := range p.words {
		if soak.Today(seed, i, 4) {
			lines = append(lines, p.name+" "+word+" "+p.places[(uint64(i)+seed)/2%2])
		}
	}
	return lines
}

// random returns a line with options, bundles of letters, values and operands that may be dangerous.
func (p *listedProgram) random(random *rand.Rand) string {
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	values := []string{"1", "a", ".env", "*", "src", "../out/secret", "/etc/passwd", "link/a", "env", "-n", "w", "''", "recurse", "new"}
	words := []string{p.name}
	for range random.IntN(4) {
		switch {
		case random.IntN(3) == 0 && len(p.words) > 0:
			words = append(words, one(p.words...))
		case random.IntN(2) == 0 && p.plain != "":
			var bundle strings.Builder
			bundle.WriteString("-")
			for range 1 + random.IntN(3) {
				bundle.WriteString(one(strings.Split(p.plain+"orRwfuLDS", "")...))
			}
			words = append(words, bundle.String()+one("", "", "", one(values...)))
		case len(p.words) > 0:
			name, _, _ := strings.Cut(one(p.words...), "=")
			words = append(words, name[:max(2, len(name)-random.IntN(3))]+one("", "=", " ")+one(values...))
		}
	}
	operands := []string{one(p.places...)}
	for range random.IntN(2) {
		operands = append(operands, one(values...))
	}
	words = append(words, operands...)
	if random.IntN(8) == 0 {
		words = slices.Insert(words, 1+random.IntN(len(words)), "--")
	}
	return strings.Join(words, " ")
}
