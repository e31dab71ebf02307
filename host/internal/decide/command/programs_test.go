package command

import "testing"

// TestReadTables checks that a wrong line of programs.txt stops the program at start.
func TestReadTables(t *testing.T) {
	good := "# a comment\nprogram cat\n  flags  An\n  long   number\n  operands paths\n\nset shells\n  sh bash\n  zsh\n"
	tables := readTables(good)
	if p := tables.programs["program"]["cat"]; p.flags != "An" || p.operands != paths || !tables.set("shells")["zsh"] {
		t.Errorf("readTables(%q) = %+v", good, tables)
	}
	for _, wrong := range []string{"program cat\n  flag A\n", "program cat\n  are numbered\n", "program cat\n  most many\n"} {
		if !panics(func() { readTables(wrong) }) {
			t.Errorf("readTables(%q) does not panic", wrong)
		}
	}
	if !panics(func() { tables.set("shell") }) {
		t.Error("an unknown set does not panic")
	}
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}
