package roots_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// workspace makes a directory with two files.
func workspace() string {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"main.go", "README.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("content of "+name), 0o600); err != nil {
			panic(err)
		}
	}
	return dir
}

func ExampleOpen() {
	dir := workspace()
	defer os.RemoveAll(dir)
	r, err := roots.Open([]string{dir}, roots.Options{})
	if err != nil {
		panic(err)
	}
	defer r.Close()

	f, err := r.Open("README.md")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	fmt.Println(string(content), err)

	_, err = r.Open("../elsewhere")
	fmt.Println(tool.AsError(err).Message)
	// Output:
	// content of README.md <nil>
	// Path not allowed by security policy: ../elsewhere
}

func ExampleRoots_Target() {
	dir := workspace()
	defer os.RemoveAll(dir)
	r, err := roots.Open([]string{dir}, roots.Options{Protected: []string{filepath.Join(dir, "main.go")}})
	if err != nil {
		panic(err)
	}
	defer r.Close()

	write := func(name, content string) error {
		t, err := r.Target(name, roots.TargetOptions{Follow: true, Parents: true})
		if err != nil {
			return err
		}
		defer t.Close()
		unlock, err := r.Lock(context.Background(), t)
		if err != nil {
			return err
		}
		defer unlock()
		return t.Write([]byte(content), roots.WriteOptions{})
	}
	fmt.Println(write("docs/new.md", "# New\n"))
	fmt.Println(write("main.go", "package main\n"))
	// Output:
	// <nil>
	// permission_denied: Path not allowed by security policy: main.go
}

func ExampleChangeAll() {
	dir := workspace()
	defer os.RemoveAll(dir)
	r, err := roots.Open([]string{dir}, roots.Options{})
	if err != nil {
		panic(err)
	}
	defer r.Close()

	var targets []*roots.Target
	for _, name := range []string{"docs/new.md", "README.md"} {
		t, err := r.Target(name, roots.TargetOptions{Parents: true})
		if err != nil {
			panic(err)
		}
		defer t.Close()
		targets = append(targets, t)
	}
	unlock, err := r.Lock(context.Background(), targets...)
	if err != nil {
		panic(err)
	}
	defer unlock()
	err = roots.ChangeAll([]roots.Change{{Target: targets[0], Content: []byte("# New\n")}, {Target: targets[1], Remove: true}})
	fmt.Println(err)
	_, err = r.Stat("README.md")
	fmt.Println(err)
	// Output:
	// <nil>
	// not_found: File not found: README.md
}

func ExampleDir() {
	dir := workspace()
	defer os.RemoveAll(dir)
	r, err := roots.Open([]string{dir}, roots.Options{})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	d, err := r.OpenDir(".", nil)
	if err != nil {
		panic(err)
	}
	defer d.Close()
	entries, err := d.Read(nil)
	fmt.Println(len(entries), err)
	_, err = d.Open("main.go")
	fmt.Println(err)
	_, err = d.Open("../main.go")
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// <nil>
	// permission_denied: Path not allowed by security policy: ../main.go
}
