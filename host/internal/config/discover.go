package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/internal/links"
)

// ErrNone is the error of [Find] if there is no configuration.
var ErrNone = errors.New("no configuration")

// Find returns the path of the configuration to load, the first of: flag; the variable
// TOOLHOST_CONFIG; the configuration in [UserDir] whose workspace is the working directory
// or the nearest directory around it; config.hcl in the working directory; and
// /etc/toolhost if it holds a *.hcl. If there is none of these, the error is [ErrNone] and
// names them all. A nil lookupEnv means [os.LookupEnv].
func Find(flag string, lookupEnv func(name string) (value string, set bool)) (string, error) {
	if lookupEnv == nil {
		lookupEnv = os.LookupEnv
	}
	return find(flag, lookupEnv, "/etc/toolhost")
}

func find(flag string, lookupEnv func(string) (string, bool), systemDir string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if path, _ := lookupEnv("TOOLHOST_CONFIG"); path != "" {
		return path, nil
	}
	userDir := UserDir(lookupEnv)
	if userDir != "" {
		if path, err := around(userDir); path != "" || err != nil {
			return path, err
		}
	}
	const local = "config.hcl"
	if _, err := os.Stat(local); err == nil {
		return local, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("find configuration: %w", err)
	}
	if files, err := filepath.Glob(filepath.Join(systemDir, "*.hcl")); err == nil && slices.ContainsFunc(files, isFile) {
		return systemDir, nil
	}
	ofUser := "no file in " + userDir + " has this workspace"
	if userDir == "" {
		ofUser = "there is no home directory, since neither XDG_CONFIG_HOME nor HOME is an absolute path"
	}
	return "", fmt.Errorf("%w: --config is not given, TOOLHOST_CONFIG is not set, %s, "+
		"and neither ./%s nor %s/*.hcl exists", ErrNone, ofUser, local, systemDir)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// LoginsDir returns the directory of a user's tokens for hosts on other machines, below
// [UserDir]. It returns "" if there is no home directory. A nil lookupEnv means [os.LookupEnv].
func LoginsDir(lookupEnv func(name string) (value string, set bool)) string {
	dir := UserDir(lookupEnv)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "logins")
}

// UserDir returns the directory of a user's configurations, one for each workspace:
// $XDG_CONFIG_HOME/toolhost, or ~/.config/toolhost. It returns "" if there is no home
// directory. A nil lookupEnv means [os.LookupEnv].
func UserDir(lookupEnv func(name string) (value string, set bool)) string {
	if lookupEnv == nil {
		lookupEnv = os.LookupEnv
	}
	if dir, _ := lookupEnv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "toolhost")
	}
	if home, _ := lookupEnv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "toolhost")
	}
	return ""
}

// around returns the configuration in a directory whose workspace is nearest around the
// working directory, or "".
func around(userDir string) (string, error) {
	here, err := filepath.Abs(".")
	if err != nil {
		return "", nil //nolint:nilerr // the working directory was removed: no workspace is around it
	}
	var nearest Outline
	for _, o := range Outlines(userDir) {
		if !within(o.Workspace, here) {
			continue
		}
		switch {
		case nearest.Path == "" || len(o.Workspace) > len(nearest.Workspace):
			nearest = o
		case len(o.Workspace) == len(nearest.Workspace):
			return "", fmt.Errorf("%s and %s both have the workspace %s: name one with --config, or remove one", nearest.Path, o.Path, o.Workspace)
		}
	}
	return nearest.Path, nil
}

// Outline is what a configuration says in plain text about where it applies.
type Outline struct {
	Path      string
	Workspace string // absolute, with symbolic links resolved
	Listen    string // "" if it is not given
}

// Outlines returns the outlines of the *.hcl of a directory that name a workspace, in
// lexical order. Files that cannot be read have none; [Load] explains why.
func Outlines(dir string) (outlines []Outline) {
	files, err := listFiles(dir)
	if err != nil {
		return nil
	}
	for _, path := range files {
		if o, err := outline(path); err == nil {
			outlines = append(outlines, o)
		}
	}
	return outlines
}

// LeftOut is a file or a directory that [Find] does not consider, and why.
type LeftOut struct {
	Path string
	Why  error
}

// AllLeftOut returns what [Find] leaves out in [UserDir]: the directory cannot be read, or the
// workspace of a file is not known or does not exist.
func AllLeftOut(lookupEnv func(name string) (value string, set bool)) (all []LeftOut) {
	dir := UserDir(lookupEnv)
	files, err := listFiles(dir)
	if errors.Is(err, fs.ErrPermission) {
		return []LeftOut{{dir, err}}
	}
	for _, path := range files {
		o, err := outline(path)
		if err != nil {
			err = fmt.Errorf("%s is left out, because its workspace is not known: %w", path, err)
		} else if _, gone := os.Stat(o.Workspace); errors.Is(gone, fs.ErrNotExist) {
			err = fmt.Errorf("%s is left out, because its workspace %s does not exist", path, o.Workspace)
		}
		if err != nil {
			all = append(all, LeftOut{path, err})
		}
	}
	return all
}

// outline reads the outline of a file.
func outline(path string) (Outline, error) {
	text, err := readBounded(path, maxFileBytes)
	if err != nil {
		return Outline{}, err
	}
	file, mistakes := hclsyntax.ParseConfig(text, path, hcl.InitialPos) // a mistake further down does not matter here
	if file == nil {
		return Outline{}, mistakes
	}
	body, ok := file.Body.(*hclsyntax.Body)
	if !ok {
		return Outline{}, errors.New("it is not HCL")
	}
	o := Outline{Path: path, Workspace: plainText(body, "workspace")}
	switch attr := body.Attributes["workspace"]; {
	case o.Workspace != "":
	case attr != nil:
		return Outline{}, fmt.Errorf("expected a text without functions and variables in line %d", attr.SrcRange.Start.Line)
	case mistakes.HasErrors():
		return Outline{}, mistakes
	default:
		return Outline{}, errors.New("it does not say workspace")
	}
	if !filepath.IsAbs(o.Workspace) {
		o.Workspace = filepath.Join(filepath.Dir(path), o.Workspace)
	}
	o.Workspace = links.Resolve(o.Workspace)
	for _, block := range body.Blocks {
		if block.Type == "server" {
			o.Listen = plainText(block.Body, "listen")
		}
	}
	return o, nil
}

// plainText returns an attribute that is a string without functions and variables.
func plainText(body *hclsyntax.Body, name string) string {
	attr, ok := body.Attributes[name]
	if !ok {
		return ""
	}
	value, found := attr.Expr.Value(nil)
	if found.HasErrors() || !value.IsKnown() || value.IsNull() || value.Type() != cty.String {
		return ""
	}
	return value.AsString()
}
