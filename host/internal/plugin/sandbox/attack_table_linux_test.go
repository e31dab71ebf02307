package sandbox

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var update = flag.Bool("update", false, "write the table of attacks into SECURITY.md")

// cellKey is one cell of the table, of one kind of host.
type cellKey struct {
	attack, who string
	level       Isolation
}

// cells say what stops each attack.
type cells map[cellKey]string

// nothing means that the attack succeeds.
const nothing = "-"

// The table in SECURITY.md is between these lines.
const (
	securityPage = "../../../../SECURITY.md"
	tableBegin   = "<!-- attacks: written by go test ./host/internal/plugin/sandbox -run Attack -update -->\n"
	tableEnd     = "<!-- end of attacks -->\n"
)

// table is the one of SECURITY.md.
type table struct {
	before, text, after string
	cells               cells
}

var levelsOfTable = []Isolation{Basic, Isolated, Strict}

func readTable(t *testing.T) *table {
	t.Helper()
	page, err := os.ReadFile(securityPage)
	must(t, err)
	before, rest, ok := strings.Cut(string(page), tableBegin)
	text, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", securityPage)
	}
	tb := &table{before: before, text: text, after: after, cells: cells{}}
	for line := range strings.Lines(text) {
		columns := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(columns) != len(levelsOfTable)+1 {
			continue
		}
		for i, level := range levelsOfTable {
			for who, claim := range splitCell(strings.TrimSpace(columns[i+1])) {
				tb.cells[cellKey{strings.TrimSpace(columns[0]), who, level}] = claim
			}
		}
	}
	return tb
}

// splitCell returns the parts of a cell for each kind of host.
func splitCell(cell string) map[string]string {
	root, user, both := strings.Cut(cell, "; user: ")
	if !both {
		return map[string]string{"root": strings.TrimPrefix(cell, "root: "), "user": cell}
	}
	return map[string]string{"root": strings.TrimPrefix(root, "root: "), "user": user}
}

func (tb *table) compare(t *testing.T, found cells) {
	t.Helper()
	want := tb.cells
	if os.Geteuid() != 0 {
		// The rows for root cannot be measured here.
		want = maps.Clone(want)
		maps.DeleteFunc(want, func(key cellKey, _ string) bool { return key.who == "root" })
	}
	if os.Geteuid() == 0 && *update {
		must(t, os.WriteFile(securityPage, []byte(tb.before+tableBegin+found.String()+tableEnd+tb.after), 0o644))
		return
	}
	for key, cell := range found {
		if want[key] != cell {
			t.Errorf("%v: %s, but SECURITY.md says %q (as root, -update writes it)", key, cell, want[key])
		}
	}
	if os.Geteuid() == 0 && runtime.GOARCH == "amd64" && tb.text != found.String() { // others have fewer ways to make a call
		t.Errorf("the table of SECURITY.md is not what was found; -update writes it")
	}
}

// String returns the table.
func (c cells) String() string {
	var b strings.Builder
	b.WriteString("| Attack | basic | isolated | strict |\n|---|---|---|---|\n")
	for _, a := range attacks() {
		b.WriteString("| " + a.name)
		for _, level := range levelsOfTable {
			root, user := c[cellKey{a.name, "root", level}], c[cellKey{a.name, "user", level}]
			switch {
			case a.rootOnly != "":
				b.WriteString(" | root: " + root)
			case root == user:
				b.WriteString(" | " + root)
			default:
				b.WriteString(" | root: " + root + "; user: " + user)
			}
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// claimText writes which layers suffice alone, and which together.
func claimText(sets [][]Layer) string {
	parts := make([]string, len(sets))
	for i, set := range sets {
		names := make([]string, len(set))
		for j, layer := range set {
			names[j] = string(layer)
		}
		parts[i] = strings.Join(names, " + ")
	}
	return strings.Join(parts, ", ")
}

func parseClaim(claim string) (sets [][]Layer, ok bool) {
	for part := range strings.SplitSeq(claim, ", ") {
		var set []Layer
		for name := range strings.SplitSeq(part, " + ") {
			if !slices.Contains(Layers(), Layer(name)) {
				return nil, false
			}
			set = append(set, Layer(name))
		}
		sets = append(sets, set)
	}
	return sets, true
}

// selectedAll reports whether no part of the attacks was chosen.
func selectedAll() bool {
	return !strings.Contains(flag.Lookup("test.run").Value.String(), "/")
}

// partVariable names the file for the results of a test process that another one has started.
const partVariable = "TOOLHOST_ATTACK_PART"

// part is a cell that crosses from one test process to another.
type part struct {
	Attack string
	Level  Isolation
	Cell   string
}

// isPart sends the results to the process that asked for them, if one did.
func isPart(t *testing.T, found cells) bool {
	t.Helper()
	name := os.Getenv(partVariable)
	if name == "" {
		return false
	}
	var parts []part
	for key, cell := range found {
		parts = append(parts, part{key.attack, key.level, cell})
	}
	text, err := json.Marshal(parts)
	must(t, err)
	must(t, os.WriteFile(name, text, 0o600))
	return true
}

// startAsUser runs the same test as an ordinary user, and returns a function that waits for its
// results.
func startAsUser(t *testing.T) func() cells {
	t.Helper()
	const nobody = 65534
	dir := filepath.Join(os.Getenv(arenaVariable), "user")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Chown(dir, nobody, nobody))
	name := filepath.Join(dir, "found")
	run := flag.Lookup("test.run").Value.String()
	if selectedAll() {
		run = "^TestAttack$"
	}
	args := []string{"-test.run=" + run, "-test.timeout=" + flag.Lookup("test.timeout").Value.String()}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = []string{arenaVariable + "=" + dir, partVariable + "=" + name, verboseVariable + "=" + os.Getenv(verboseVariable)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	return func() cells {
		t.Helper()
		err := cmd.Wait()
		if err != nil {
			t.Errorf("as an ordinary user: %v\n%s", err, &out)
		} else if testing.Verbose() {
			t.Logf("as an ordinary user:\n%s", &out)
		}
		found := cells{}
		if answer, err := os.ReadFile(name); err == nil {
			var parts []part
			must(t, json.Unmarshal(answer, &parts))
			for _, p := range parts {
				found[cellKey{p.Attack, "user", p.Level}] = p.Cell
			}
		}
		return found
	}
}
