package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const maxLines = 500

// generated finds the line that marks a generated file (go help generate).
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goFiles returns the Go files below dir.
func goFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != "." || d.Name() == "node_modules"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFilesAreShort(t *testing.T) {
	for _, path := range goFiles(t, root(t)) {
		text := readFile(t, path)
		if generated.MatchString(text) {
			continue
		}
		if n := strings.Count(text, "\n"); n > maxLines {
			t.Errorf("%s has %d lines, at most %d: split it by what a reader looks for", path, n, maxLines)
		}
	}
}

// TestHostKnowsNoPlugin finds the names of the first-party tools and plugins
// and looks for them in the host's code.
func TestHostKnowsNoPlugin(t *testing.T) {
	known := map[string]string{} // literal -> its meaning
	plugins := filepath.Join(root(t), "plugins")
	entries, err := os.ReadDir(plugins)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		known["plugins/"+e.Name()] = "the path of a plugin"
		known["bin/plugins/"+e.Name()] = "the path of a plugin"
	}
	for _, path := range goFiles(t, plugins) {
		for _, name := range toolNames(t, path) {
			known[name] = "the name of a tool in " + path
		}
	}
	if len(known) <= 2*len(entries) {
		t.Fatal("found no tool in the plugins: toolNames does not know how tools are declared")
	}
	for _, path := range goFiles(t, filepath.Join(root(t), "host")) {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
			continue // tests, and the programs that they call
		}
		inspect(t, path, func(n ast.Node) {
			if s, ok := stringLiteral(n); ok && known[s] != "" {
				t.Errorf("%s contains %q, %s: the host knows no plugin by name", path, s, known[s])
			}
		})
	}
}

// TestGeneratedTypesStopAtTheEdge finds code that speaks the generated types
// instead of package tool.
func TestGeneratedTypesStopAtTheEdge(t *testing.T) {
	edge := []string{"host/internal/plugin/process/wire", "sdk/server.go", "sdk/wire.go", "sdk/sdktest/", "proto/"}
	shared := []string{"CheckHandshake", "Handshake", "IsHandshake", "MaxMessageBytes", "ServiceName", "Version"} // of handshake.go
	for _, path := range goFiles(t, root(t)) {
		name, err := filepath.Rel(root(t), path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") || slices.ContainsFunc(edge, func(e string) bool { return strings.HasPrefix(name, e) }) {
			continue
		}
		inspect(t, path, func(n ast.Node) {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "toolpluginv1" && !slices.Contains(shared, selector.Sel.Name) {
				t.Errorf("%s uses the generated %s: convert it in %v", name, selector.Sel.Name, edge)
			}
		})
	}
}

// TestInits finds the init functions. Each one runs in every program that imports its
// package, so ARCHITECTURE.md lists them.
func TestInits(t *testing.T) {
	known := map[string]bool{"host/internal/plugin/launch": false, "sdk/proc/internal/reaper": false}
	for _, path := range goFiles(t, root(t)) {
		dir, err := filepath.Rel(root(t), filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "_test.go") || generated.MatchString(readFile(t, path)) {
			continue
		}
		inspect(t, path, func(n ast.Node) {
			f, ok := n.(*ast.FuncDecl)
			if !ok || f.Recv != nil || f.Name.Name != "init" {
				return
			}
			if _, ok := known[dir]; !ok {
				t.Errorf("%s has an init: call a function from main instead", path)
			}
			known[dir] = true
		})
	}
	page := readFile(t, filepath.Join(root(t), "ARCHITECTURE.md"))
	for dir, found := range known {
		if !found {
			t.Errorf("package %s has no init any more: remove it here and from ARCHITECTURE.md", dir)
		}
		if !strings.Contains(page, "two `init`s") || !strings.Contains(page, "`"+dir+"`") {
			t.Errorf("ARCHITECTURE.md does not list the init of %s", dir)
		}
	}
}

// toolNames returns the names in `tool.Spec{Name: "..."}` literals of a file.
func toolNames(t *testing.T, path string) []string {
	t.Helper()
	var names []string
	inspect(t, path, func(n ast.Node) {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return
		}
		typ, ok := literal.Type.(*ast.SelectorExpr)
		if !ok || typ.Sel.Name != "Spec" {
			return
		}
		for _, element := range literal.Elts {
			kv, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Name" {
				if s, ok := stringLiteral(kv.Value); ok {
					names = append(names, s)
				}
			}
		}
	})
	return names
}

func inspect(t *testing.T, path string, visit func(ast.Node)) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if n != nil {
			visit(n)
		}
		return true
	})
}

func stringLiteral(n ast.Node) (string, bool) {
	literal, ok := n.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(literal.Value)
	return s, err == nil
}
