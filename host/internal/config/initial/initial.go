// Package initial writes the first configuration of a directory: the default one, with
// the plugins of this program and the programs of this machine.
package initial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// Options say what a configuration is for.
type Options struct {
	// Workspace is the absolute path of the directory that tools work in.
	Workspace string
	// PluginDir is the absolute path of the directory of the plugins. "" leaves it out of the
	// configuration: they are installed with the program of the host.
	PluginDir string
	// Listen is the address of the host, such as "127.0.0.1:7780".
	Listen string
	// Programs are those that [FindPrograms] has found.
	Programs []Program
	// Git is the program of the plugin git; see [FindGit]. "" leaves the plugin out.
	Git string
}

// Executable returns what commands can execute because of the programs, besides the system:
// directories, and programs alone.
func (o Options) Executable() (paths []string) {
	for _, p := range slices.Backward(o.Programs) {
		path := p.installed()
		if path != "" && !strings.HasPrefix(p.Path, o.Workspace+"/") && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Program is a program of this machine that agents often need.
type Program struct {
	Name string `json:"name"`
	Path string `json:"path"` // absolute
}

// dir is the directory to put into PATH.
func (p Program) dir() string { return filepath.Dir(p.Path) }

// installed is what commands must be able to execute: the directory that the program is
// installed in, with what it needs, or the program alone if that directory may hold anything
// else, such as ~. It is "" for a program of the system, which commands can always execute.
func (p Program) installed() string {
	if slices.ContainsFunc(sandbox.SystemDirs(), func(dir string) bool { return strings.HasPrefix(p.Path, dir+"/") }) {
		return ""
	}
	dir, base := filepath.Dir(p.dir()), filepath.Base(p.dir())
	home, _ := os.UserHomeDir()
	wide := dir == "/" || home != "" && (strings.HasPrefix(home+"/", dir+"/") || dir == filepath.Join(home, ".local"))
	if wide || base != "bin" && base != "shims" {
		return p.Path
	}
	return dir
}

// FindPrograms returns those of git, go, node and python3 that are in PATH. lookPath is
// [exec.LookPath] if it is nil.
func FindPrograms(lookPath func(name string) (string, error)) []Program {
	if lookPath == nil {
		lookPath = exec.LookPath
	}
	var found []Program
	for _, name := range []string{"git", "go", "node", "python3"} {
		path, err := lookPath(name)
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Base(real) == name {
			path = real // its directory has what it needs; a name of its own may be a dispatcher
		}
		found = append(found, Program{Name: name, Path: path})
	}
	return found
}

// usualGit is the program that the plugin git runs without a setting.
const usualGit = "/usr/bin/git"

// FindGit returns the program of the plugin git: the usual one, otherwise the one among the
// programs if it is not in the workspace, otherwise "". lookPath is [exec.LookPath] if it is nil.
func FindGit(programs []Program, workspace string, lookPath func(name string) (string, error)) string {
	if lookPath == nil {
		lookPath = exec.LookPath
	}
	if _, err := lookPath(usualGit); err == nil {
		return usualGit
	}
	for _, p := range programs {
		if p.Name == "git" && !strings.HasPrefix(p.Path, workspace+"/") {
			return p.Path
		}
	}
	return ""
}

// Text returns the text of the configuration.
func Text(opts Options) (string, error) {
	e := edit{text: toolhost.Config}
	_, rest, found := strings.Cut(e.text, "# Tools work in this directory")
	if !found {
		return "", errChanged("its first comment")
	}
	e.text = "# The host for " + oneLine(opts.Workspace) + ", made by toolhost init.\n" +
		"# The documentation (docs/configuration.md) describes every setting and what holds without it.\n" +
		"#\n" +
		"#   toolhost validate          checks it and reports each mistake with its line\n" +
		"#   toolhost explain TOOL ...  shows what would happen to a call, and why\n" +
		"#   toolhost reload            applies it to a running host\n\n" +
		"# Tools work in this directory" + rest
	e.replace(`workspace = "."`, "workspace = "+quoted(opts.Workspace))
	if opts.PluginDir == "" {
		e.replace("# `make build` puts the plugins here. No tool can change this directory, nor this file.\nplugin_dir = \"bin/plugins\"\n\n", "")
	} else {
		e.replace("# `make build` puts the plugins here.", "# The plugins.")
		e.replace(`plugin_dir = "bin/plugins"`, "plugin_dir = "+quoted(opts.PluginDir))
	}
	e.replace(`listen = "127.0.0.1:7780"`, "listen = "+quoted(opts.Listen))
	e.programs(opts)
	e.git(opts.Git)
	return e.text, e.err
}

// programs lets commands execute the programs. It leaves the PATH of commands free of the
// workspace's own directories: in these, a tool could make a program called ls.
func (e *edit) programs(opts Options) {
	const usual = "/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	path := strings.Split(usual, ":")
	for _, p := range slices.Backward(opts.Programs) {
		if !strings.HasPrefix(p.Path, opts.Workspace+"/") && !slices.Contains(path, p.dir()) {
			path = append([]string{p.dir()}, path...)
		}
	}
	const system = `"system", "workspace", "home", "tmp"`
	exec := []string{system}
	for _, dir := range opts.Executable() {
		exec = append(exec, quoted(dir))
	}
	e.replace(quoted(usual), quoted(strings.Join(path, ":")))
	e.replace(system, strings.Join(exec, ", "))
}

// git gives the plugin git its program, or removes the plugin if there is none.
func (e *edit) git(program string) {
	if program == usualGit {
		return
	}
	if program != "" {
		const block, exec = "plugin \"git\" {\n  tier   = \"privileged\"\n  claims = \"trust\"\n", `"/usr/bin/git", "/usr/lib/git-core", "/usr/libexec/git-core", `
		e.replace(block, block+"  config { program = "+quoted(program)+" }\n")
		e.replace(exec, quoted(program)+", "+quoted(gitCore(program, "lib"))+", "+quoted(gitCore(program, "libexec"))+", ")
		return
	}
	before, rest, found := strings.Cut(e.text, "# Git repositories.")
	_, after, alsoFound := strings.Cut(rest, "# Commands, with")
	if !found || !alsoFound {
		e.err = errChanged("the block of git")
		return
	}
	e.text = before + "# Commands, with" + after
}

// gitCore returns where git may have its own programs, beside the directory of its program.
func gitCore(program, dir string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(program)), dir, "git-core")
}

// edit is a text under change.
type edit struct {
	text string
	err  error
}

// replace replaces the only occurrence of old.
func (e *edit) replace(old, with string) {
	if strings.Count(e.text, old) != 1 {
		e.err = errChanged(old)
		return
	}
	e.text = strings.Replace(e.text, old, with, 1)
}

func errChanged(what string) error {
	return fmt.Errorf("the default configuration does not have %s once", what)
}

// quoted returns a string of HCL.
func quoted(text string) string {
	return string(hclwrite.TokensForValue(cty.StringVal(text)).Bytes())
}

// oneLine returns a path for a comment.
func oneLine(path string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, path)
}

const (
	// maxNames bounds the configurations for directories of one name.
	maxNames = 100
	// maxBase bounds the name of a file, in bytes, without a number and .hcl: a system allows
	// 255 bytes.
	maxBase = 240
)

// Path returns the path of a new file in dir for a workspace: its base name, which is cut if it
// is too long, with .hcl, or with a number.
func Path(dir, workspace string) (string, error) {
	name := strings.TrimLeft(oneLine(filepath.Base(workspace)), ".")
	if len(name) > maxBase {
		name = strings.ToValidUTF8(name[:maxBase], "")
	}
	if name == "" || name == "/" {
		name = "config"
	}
	for i := range maxNames {
		path := filepath.Join(dir, name+".hcl")
		if i > 0 {
			path = filepath.Join(dir, fmt.Sprintf("%s-%d.hcl", name, i+1))
		}
		switch _, err := os.Lstat(path); {
		case errors.Is(err, fs.ErrNotExist):
			return path, nil
		case err != nil:
			return "", fmt.Errorf("write the configuration: %w", err)
		}
	}
	return "", fmt.Errorf("%s has %d configurations called %s.hcl: remove those that are not used", dir, maxNames, name)
}
