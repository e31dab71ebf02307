package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestHintsCanBeTyped reports messages that name a command as text: a.command adds the program and
// the configuration, so that a person can paste it in any directory. Help texts are about any
// program and configuration.
func TestHintsCanBeTyped(t *testing.T) {
	t.Parallel()
	commands := (&app{}).root(func() {}).Commands()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := func(text string) bool {
		for _, cmd := range commands {
			if strings.Contains(text, "toolhost "+cmd.Name()) {
				return true
			}
		}
		return false
	}
	messages := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var parts []ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok {
					if from, ok := f.X.(*ast.Ident); ok && (from.Name == "fmt" || from.Name == "errors") || f.Sel.Name == "oneArgument" {
						parts = n.Args
					}
				}
			case *ast.CompositeLit:
				if kind, ok := n.Type.(*ast.Ident); ok && kind.Name == "hintError" {
					parts = n.Elts
				}
			}
			for _, part := range parts {
				ast.Inspect(part, func(n ast.Node) bool {
					lit, ok := n.(*ast.BasicLit)
					if !ok || lit.Kind != token.STRING {
						return true
					}
					messages++
					if text, err := strconv.Unquote(lit.Value); err == nil && names(text) {
						t.Errorf("%s: %q names a command that cannot be typed in any directory; use a.command", set.Position(lit.Pos()), text)
					}
					return true
				})
			}
			return true
		})
	}
	if messages < 100 {
		t.Fatalf("%d messages found: the test would prove nothing", messages)
	}
}
