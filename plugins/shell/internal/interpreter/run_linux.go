package interpreter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
	"mvdan.cc/sh/v3/syntax/typedjson"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Exit codes of shells.
const (
	notFound      = 127
	notExecutable = 126
	bySignal      = 128
)

// lacking are builtins of bash that the interpreter does not have or that do
// nothing in it.
//
//nolint:gochecknoglobals // a table
var lacking = strings.Fields("alias bg bind caller compgen complete compopt disown enable fc fg hash history jobs kill logout newgrp suspend times ulimit umask")

// runner executes one tree.
type runner struct {
	asker    *asker
	writable []string
	pipes    string
	given    map[string]string // the initial environment of the command
}

// run executes the tree with the standard streams, environment and directory of
// this process, and returns its exit code.
func run(o *Program, a *asker) (int, error) {
	tree, err := typedjson.Decode(bytes.NewReader(o.Tree))
	if err != nil {
		return 0, err
	}
	dir, err := unix.Getwd()
	if err != nil {
		return 0, err
	}
	r := &runner{asker: a, writable: o.Writable, pipes: o.Pipes, given: make(map[string]string)}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		r.given[name] = value
	}
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "TMPDIR=") })
	pipes := cmp.Or(o.Pipes, nowhere)
	if err := os.Setenv("TMPDIR", pipes); err != nil { //nolint:forbidigo // where the library looks
		return 0, err
	}
	shell, err := interp.New(
		interp.StdIO(os.Stdin, os.Stdout, os.Stderr), interp.Dir(dir), interp.Env(expand.ListEnviron(env...)),
		interp.CallHandler(r.call), interp.OpenHandler(r.open), interp.ReadDirHandler2(r.readDir),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return r.execute }),
	)
	if err != nil {
		return 0, err
	}
	ctx := context.Background() //nolint:forbidigo // the process ends with it
	if tmp, ok := r.given["TMPDIR"]; ok {
		if err := shell.Run(ctx, exporting("TMPDIR", tmp)); err != nil {
			return 0, err
		}
	}
	err = shell.Run(ctx, tree)
	_ = unix.Chdir(shell.Dir) // where the plugin sees it; the directory may be gone
	var status interp.ExitStatus
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &status):
		return int(status), nil
	}
	return 0, err
}

// nowhere is the directory for pipes of a command that needs none. The library
// opens pipes by name without asking, so the directory must not exist.
const nowhere = "/proc/self/nowhere"

// exporting returns the statement export NAME='VALUE'.
func exporting(name, value string) *syntax.Stmt {
	return &syntax.Stmt{Cmd: &syntax.DeclClause{Variant: &syntax.Lit{Value: "export"}, Args: []*syntax.Assign{{
		Name: &syntax.Lit{Value: name}, Value: &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: value}}},
	}}}}
}

// call asks about builtins. Programs and the parts of functions are asked about
// when they are executed.
func (r *runner) call(ctx context.Context, args []string) ([]string, error) {
	if interp.IsBuiltin(args[0]) {
		h := interp.HandlerCtx(ctx)
		if slices.Contains(lacking, args[0]) { // ask about it as an unknown command, so that bash can run it after approval
			r.ask(&h, append([]string{"builtin"}, args...))
			return nil, fmt.Errorf("%s is a builtin that only bash has", args[0])
		}
		r.ask(&h, args)
	}
	if args[0] == "echo" { // split combined options (-ne), which the library does not support
		for i := 1; i < len(args) && echoOptions(args[i]); i++ {
			if len(args[i]) > 2 {
				args = slices.Insert(slices.Clone(args), i+1, "-"+args[i][2:])
				args[i] = args[i][:2]
			}
		}
	}
	return args, nil
}

func echoOptions(word string) bool {
	return len(word) > 1 && word[0] == '-' && strings.Trim(word[1:], "neE") == ""
}

// ask asks about a program or builtin with its words.
func (r *runner) ask(h *interp.HandlerContext, args []string) {
	_, changed := r.environment(h)
	args = slices.Clone(args)
	for i, word := range args {
		if r.isPipe(word) { // the pipe yields another command's output, as standard input does
			args[i] = "/dev/stdin"
		}
	}
	r.asker.mayRun(tool.Execution{Argv: args, Environment: changed, Directory: h.Dir})
}

// isPipe reports whether a word names a pipe of a process substitution.
func (r *runner) isPipe(word string) bool {
	if r.pipes == "" || filepath.Dir(word) != r.pipes {
		return false
	}
	info, err := os.Lstat(word)
	return err == nil && info.Mode().Type() == os.ModeNamedPipe
}

// environment returns the environment of a program, and the part of it that the
// command has changed. A removed variable counts as changed to "".
func (r *runner) environment(h *interp.HandlerContext) (all, changed []string) {
	now := make(map[string]string)
	for name, variable := range h.Env.Each { // a name may be repeated: the last one counts
		if variable.Exported && variable.IsSet() && variable.Kind == expand.String && !own(name) {
			now[name] = variable.Str
		} else {
			delete(now, name)
		}
	}
	for name, value := range now {
		all = append(all, name+"="+value)
		if given, ok := r.given[name]; !ok || given != value {
			changed = append(changed, name+"="+value)
		}
	}
	for name := range r.given {
		if _, ok := now[name]; !ok && !own(name) {
			changed = append(changed, name+"=")
		}
	}
	slices.Sort(changed)
	return append(all, "PWD="+h.Dir), changed
}

// own reports whether the shell itself maintains a variable.
func own(name string) bool {
	return name == "PWD" || name == "OLDPWD" || name == "SHLVL" || name == "_"
}

// execute executes a program.
func (r *runner) execute(ctx context.Context, args []string) error {
	h := interp.HandlerCtx(ctx)
	if is, err := r.built(&h, args); is {
		return err
	}
	return r.program(&h, args, h.Stdin)
}

// program executes a program with the given standard input.
func (r *runner) program(h *interp.HandlerContext, args []string, input io.Reader) error {
	path, found := lookUp(h, args[0])
	if found && r.mayBeReplaced(path) { // its name does not identify it
		args = append([]string{path}, args[1:]...)
	}
	r.ask(h, args)
	if !found {
		fmt.Fprintf(h.Stderr, "%s: command not found\n", args[0])
		return startError{notFound}
	}
	env, _ := r.environment(h)
	c := exec.Cmd{Path: path, Args: args, Env: env, Dir: h.Dir, Stdin: input, Stdout: h.Stdout, Stderr: h.Stderr}
	err := c.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ended):
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return interp.ExitStatus(bySignal + uint8(status.Signal()))
		}
		return interp.ExitStatus(uint8(ended.ExitCode()))
	case c.Process == nil: // it was not started
		var cause syscall.Errno
		errors.As(err, &cause)
		fmt.Fprintf(h.Stderr, "%s: cannot be executed: %v\n", args[0], cause)
		return startError{notExecutable}
	}
	fmt.Fprintf(h.Stderr, "%s: %v\n", args[0], err) // its output could not be copied
	return interp.ExitStatus(1)
}

// startError is the exit status of a program that could not be started.
type startError struct{ status interp.ExitStatus }

func (n startError) Error() string { return n.status.Error() }
func (n startError) Unwrap() error { return n.status }

// lookUp finds a program as a shell does, but only in absolute directories.
func lookUp(h *interp.HandlerContext, name string) (path string, ok bool) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(h.Dir, name)
		}
		return name, executable(name)
	}
	for _, dir := range filepath.SplitList(h.Env.Get("PATH").String()) {
		if path := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(path) {
			return path, true
		}
	}
	return "", false
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// mayBeReplaced reports whether commands can write to a program, to its directory,
// or to the target of a symbolic link that leads to it.
func (r *runner) mayBeReplaced(path string) bool {
	target, err := filepath.EvalSymlinks(path)
	if err != nil || below(path, r.writable) || below(target, r.writable) {
		return true
	}
	may := func(path string) bool { return unix.Access(path, unix.W_OK) == nil }
	return os.Geteuid() != 0 && (may(filepath.Dir(path)) || may(target) || may(filepath.Dir(target)))
}
