package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/toolhost/toolhost"

// goPackage is the part of the output of `go list -json` that is used.
type goPackage struct {
	Dir          string
	ImportPath   string
	Doc          string
	Standard     bool
	Module       *struct{ Path string }
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// root is the directory of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// goList runs `go list -json` in dir and returns the packages by import path.
func goList(t *testing.T, dir string, args ...string) map[string]goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json"}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, &stderr)
	}
	packages := map[string]goPackage{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// own returns the path of a package below the module, "." for the one at its root, or
// false if it is another module's.
func own(importPath string) (string, bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

func TestImportsAreInTheTableAndGoDown(t *testing.T) {
	rows := readTable(t)
	all := goList(t, root(t), "-deps", "./...")
	seen := map[string]bool{}
	for path, p := range all {
		name, ok := own(path)
		if !ok {
			continue
		}
		seen[name] = true
		r, ok := rows[name]
		if !ok {
			t.Errorf("package %s has no row in ARCHITECTURE.md", name)
			continue
		}
		if p.Doc == "" {
			t.Errorf("package %s has no package comment", name)
		}
		checkImports(t, r, p, rows, all)
	}
	for name := range rows {
		if !seen[name] {
			t.Errorf("ARCHITECTURE.md has a row for %s, which does not exist", name)
		}
	}
}

func checkImports(t *testing.T, r row, p goPackage, rows map[string]row, all map[string]goPackage) {
	t.Helper()
	var imports, modules []string
	for _, path := range p.Imports {
		if name, ok := own(path); ok {
			imports = append(imports, name)
			if rows[name].order <= r.order {
				t.Errorf("%s imports %s, which stands above it in ARCHITECTURE.md: imports only go down", r.pkg, name)
			}
			continue
		}
		if dep := all[path]; !dep.Standard && dep.Module != nil {
			modules = append(modules, strings.TrimPrefix(dep.Module.Path, "github.com/"))
		}
	}
	compare(t, r.pkg, "imports", imports, r.imports)
	compare(t, r.pkg, "modules", modules, r.modules)
}

// compare reports differences between the code and the table.
func compare(t *testing.T, pkg, what string, code, table []string) {
	t.Helper()
	for _, name := range code {
		if !slices.Contains(table, name) {
			t.Errorf("%s imports %s, but its row in ARCHITECTURE.md does not list it under %s", pkg, name, what)
		}
	}
	for _, name := range table {
		if !slices.Contains(code, name) {
			t.Errorf("the row of %s in ARCHITECTURE.md lists %s under %s, but the code does not import it", pkg, name, what)
		}
	}
}

func TestPluginsImportOnlyTheSDK(t *testing.T) {
	plugins := goList(t, root(t), "./plugins/...")
	if len(plugins) == 0 {
		t.Fatal("no plugins found")
	}
	for path, p := range plugins {
		tests := slices.DeleteFunc(slices.Concat(p.TestImports, p.XTestImports), func(path string) bool {
			return path == modulePath+"/internal/soak" || path == modulePath+"/internal/testprogram"
		})
		for _, imported := range slices.Concat(p.Imports, tests) {
			if name, ok := own(imported); ok && name != "sdk" && !strings.HasPrefix(name, "sdk/") && !samePlugin(path, imported) {
				t.Errorf("%s imports %s: plugins import only sdk/..., and packages of their own", path, name)
			}
		}
	}
}

// samePlugin reports whether both packages are below the same folder of plugins.
func samePlugin(path, imported string) bool {
	folder := func(p string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(p, modulePath+"/plugins/"), "/")
		return name
	}
	return strings.HasPrefix(imported, modulePath+"/plugins/") && folder(path) == folder(imported)
}

// TestThirdPartiesInheritLittle builds the examples outside the repository and checks their
// dependencies.
func TestThirdPartiesInheritLittle(t *testing.T) {
	for _, name := range []string{"hello", "disk"} {
		t.Run(name, func(t *testing.T) { inheritsLittle(t, filepath.Join(root(t), "examples", name)) })
	}
}

func inheritsLittle(t *testing.T, dir string) {
	t.Helper()
	unwanted := []string{"hashicorp/hcl", "zclconf/go-cty", "modelcontextprotocol/", "sqlite", "chromem", "santhosh-tekuri/"}
	for path := range goList(t, dir, "-deps", "./...") {
		for _, u := range unwanted {
			if strings.Contains(path, u) {
				t.Errorf("%s links %s", dir, path)
			}
		}
		if strings.HasPrefix(path, modulePath+"/host") || strings.HasPrefix(path, modulePath+"/plugins") {
			t.Errorf("%s links %s", dir, path)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text := readFile(t, filepath.Join(dir, name))
		for _, u := range unwanted {
			if strings.Contains(text, u) {
				t.Errorf("%s/%s names %s", dir, name, u)
			}
		}
	}
	buildOutside(t, dir)
}

// buildOutside builds a copy of a module that only knows where this one is.
func buildOutside(t *testing.T, module string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(module)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"mod", "edit", "-replace", modulePath + "=" + root(t)},
		{"build", "-ldflags=-s -w", "-o", t.TempDir(), "."}, // linking takes most of it
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v in a copy of %s: %v\n%s", args, module, err, out)
		}
	}
}
