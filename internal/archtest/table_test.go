package archtest

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// row is one line of the package table in ARCHITECTURE.md.
type row struct {
	order   int      // 0 is the top; imports go down only
	pkg     string   // below the module path
	imports []string // packages of this module, below the module path
	modules []string // modules of others, without "github.com/"
}

// codeSpan finds the `names` in a table cell.
var codeSpan = regexp.MustCompile("`([^`]+)`")

// readTable returns the rows of the package table by package.
func readTable(t *testing.T) map[string]row {
	t.Helper()
	f, err := os.Open(filepath.Join(root(t), "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := map[string]row{}
	inTable := false
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		switch {
		case strings.HasPrefix(line, "| Package |"):
			inTable = true
		case !inTable || strings.HasPrefix(line, "|---"):
		case !strings.HasPrefix(line, "|"):
			inTable = false
		default:
			r, err := parseRow(line)
			if err != nil {
				t.Fatalf("ARCHITECTURE.md: %q: %v", line, err)
			}
			if _, twice := rows[r.pkg]; twice {
				t.Errorf("ARCHITECTURE.md: package %s has two rows", r.pkg)
			}
			r.order = len(rows)
			rows[r.pkg] = r
		}
	}
	if len(rows) == 0 {
		t.Fatal(`ARCHITECTURE.md has no table that begins with "| Package |"`)
	}
	short := map[string]string{}
	for name := range rows {
		if strings.HasPrefix(name, internalPrefix) {
			short[path.Base(name)] = name
		}
	}
	for _, r := range rows {
		for i, name := range r.imports {
			if full, ok := short[name]; ok {
				r.imports[i] = full
			}
		}
	}
	return rows
}

// internalPrefix and the room below it may be left out in the list of imports.
const internalPrefix = "host/internal/"

// TestRoomsAreTogether checks that the packages of a room are adjacent in the table. Because
// imports only go down, no two rooms can then depend on each other.
func TestRoomsAreTogether(t *testing.T) {
	rows := readTable(t)
	ordered := make([]string, len(rows))
	for name, r := range rows {
		ordered[r.order] = name
	}
	left, last := map[string]bool{}, ""
	for _, name := range ordered {
		below, ok := strings.CutPrefix(name, internalPrefix)
		room, _, _ := strings.Cut(below, "/")
		if !ok {
			room = ""
		}
		if room != last {
			left[last] = true
		}
		if left[room] && room != "" {
			t.Errorf("ARCHITECTURE.md: %s stands apart from the other packages of %s", name, room)
		}
		last = room
	}
}

// parseRow reads "| package | sentence | imports | modules |".
func parseRow(line string) (row, error) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	if len(cells) != 4 {
		return row{}, fmt.Errorf("%d cells, want package, sentence, imports, modules", len(cells))
	}
	names := spans(cells[0])
	if len(names) != 1 {
		return row{}, fmt.Errorf("the first cell must hold one `package`")
	}
	if strings.TrimSpace(cells[1]) == "" {
		return row{}, fmt.Errorf("a sentence is missing")
	}
	return row{pkg: names[0], imports: spans(cells[2]), modules: spans(cells[3])}, nil
}

func spans(cell string) []string {
	var names []string
	for _, m := range codeSpan.FindAllStringSubmatch(cell, -1) {
		names = append(names, m[1])
	}
	return names
}
