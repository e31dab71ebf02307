package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestNothingSleeps finds waits for a time instead of an event: time.Sleep, and a receive from
// time.After that is a statement or in a test. In a test, it also finds a receive from a timer
// or ticker that waits for nothing else. In a testing/synctest bubble such waits move the clock
// and are allowed.
func TestNothingSleeps(t *testing.T) {
	for _, path := range goFiles(t, root(t)) {
		if text := readFile(t, path); generated.MatchString(text) {
			continue
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range waits(f, strings.HasSuffix(path, "_test.go")) {
			t.Errorf("%s waits for a time: wait for an event, and bound that by a context or a timer", files.Position(n.Pos()))
		}
	}
}

// waits returns what waits for a time in a file.
func waits(f *ast.File, test bool) (found []ast.Node) {
	bubbles := bubblesOf(f)
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil || slices.Contains(bubbles, n) {
			return false
		}
		if sleeps(n, test) {
			found = append(found, n)
		}
		return true
	})
	return found
}

// bubblesOf returns the code of a file that runs in bubbles: arguments of synctest.Test,
// functions of the file that they name, and functions that call synctest.Wait, which panics
// elsewhere.
func bubblesOf(f *ast.File) (bubbles []ast.Node) {
	functions := map[string]ast.Node{}
	for _, d := range f.Decls {
		if function, ok := d.(*ast.FuncDecl); ok {
			functions[function.Name.Name] = function
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isCallOf(call, "synctest", "Test") {
			bubbles = append(bubbles, call.Args[len(call.Args)-1])
			return false
		}
		return true
	})
	for _, function := range functions {
		if !slices.Contains(bubbles, function) && onlyWaits(function) {
			bubbles = append(bubbles, function)
		}
	}
	for i := 0; i < len(bubbles); i++ { // it grows
		ast.Inspect(bubbles[i], func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok && functions[name.Name] != nil && !slices.Contains(bubbles, functions[name.Name]) {
				bubbles = append(bubbles, functions[name.Name])
			}
			return true
		})
	}
	return bubbles
}

// onlyWaits reports whether a function calls synctest.Wait, and begins no bubble itself.
func onlyWaits(function ast.Node) bool {
	waits, begins := false, false
	ast.Inspect(function, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			waits = waits || isCallOf(call, "synctest", "Wait")
			begins = begins || isCallOf(call, "synctest", "Test")
		}
		return true
	})
	return waits && !begins
}

// sleeps reports whether a node waits for a time.
func sleeps(n ast.Node, test bool) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		return isCallOf(n, "time", "Sleep")
	case *ast.UnaryExpr:
		return test && isReceive(n, isAfter)
	case *ast.RangeStmt:
		return test && (isAfter(n.X) || isTimer(n.X))
	case *ast.SelectStmt:
		return test && len(n.Body.List) == 1 && waitsForTimer(n.Body.List[0].(*ast.CommClause).Comm)
	case *ast.BlockStmt:
		return slices.ContainsFunc(n.List, func(s ast.Stmt) bool { return isWait(s, test) })
	case *ast.CaseClause:
		return slices.ContainsFunc(n.Body, func(s ast.Stmt) bool { return isWait(s, test) })
	case *ast.CommClause:
		return slices.ContainsFunc(n.Body, func(s ast.Stmt) bool { return isWait(s, test) })
	case *ast.ForStmt:
		return isWait(n.Post, test)
	}
	return false
}

// isWait reports whether a statement is a receive from a timer.
func isWait(s ast.Stmt, test bool) bool {
	statement, ok := s.(*ast.ExprStmt)
	return ok && (!test && isReceive(statement.X, isAfter) || test && isReceive(statement.X, isTimer))
}

func waitsForTimer(s ast.Stmt) bool {
	statement, ok := s.(*ast.ExprStmt)
	return ok && isReceive(statement.X, isTimer)
}

func isReceive(n ast.Expr, from func(ast.Expr) bool) bool {
	receive, ok := n.(*ast.UnaryExpr)
	return ok && receive.Op == token.ARROW && from(receive.X)
}

// isAfter reports whether an expression is a channel of package time that is made where
// it is used.
func isAfter(n ast.Expr) bool {
	if call, ok := n.(*ast.CallExpr); ok {
		return isCallOf(call, "time", "After") || isCallOf(call, "time", "Tick")
	}
	selector, ok := n.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "C" {
		return false
	}
	call, ok := selector.X.(*ast.CallExpr)
	return ok && (isCallOf(call, "time", "NewTimer") || isCallOf(call, "time", "NewTicker"))
}

// isTimer reports whether an expression is the channel of a timer or a ticker.
func isTimer(n ast.Expr) bool {
	selector, ok := n.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "C"
}

func isCallOf(call *ast.CallExpr, pkg, name string) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	of, ok := selector.X.(*ast.Ident)
	return ok && of.Name == pkg
}

func TestSleepsAreFound(t *testing.T) {
	for _, tt := range []struct {
		code string
		test bool
		want bool
	}{
		{"time.Sleep(1)", false, true},
		{"time.Sleep(1)", true, true},
		{"<-time.After(1)", false, true},
		{"<-time.After(1)", true, true},
		{"select { case <-time.After(1): }", false, false},
		{"select { case <-time.After(1): case <-done: }", true, true},
		{"<-time.NewTimer(1).C", true, true},
		{"<-time.Tick(1)", true, true},
		{"for range time.Tick(1) { }", true, true},
		{"for range ticker.C { }", true, true},
		{"<-timer.C", false, false},
		{"<-timer.C", true, true},
		{"if a { b(); <-timer.C }", true, true},
		{"for ; ; <-timer.C { }", true, true},
		{"switch { case a: <-timer.C }", true, true},
		{"select { case <-done: <-timer.C }", true, true},
		{"select { case <-timer.C: }", true, true},
		{"select { case <-timer.C: case <-done: }", true, false},
		{"_ = time.After(1)", false, false},
		{"synctest.Test(t, func(t *testing.T) { time.Sleep(1); <-timer.C })", true, false},
		{"synctest.Test(t, func(t *testing.T) { }); time.Sleep(1)", true, true},
		{"synctest.Test(t, func(t *testing.T) { a() }) }; func a() { b() }; func b() { time.Sleep(1)", true, false},
		{"synctest.Wait(); time.Sleep(1)", true, false},
		{"synctest.Test(t, func(t *testing.T) { synctest.Wait() }); time.Sleep(1)", true, true},
		{"synctest.Test(t, func(t *testing.T) { a() }) }; func a() { }; func b() { time.Sleep(1)", true, true},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() { "+tt.code+" }", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(waits(f, tt.test)) > 0; got != tt.want {
			t.Errorf("waits(%s) in a test %v = %v, want %v", tt.code, tt.test, got, tt.want)
		}
	}
}
