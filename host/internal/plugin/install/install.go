// Package install fetches the packages of MCP servers into a store. It resolves a package once,
// in a sandbox whose only network is the registry, without the package's install scripts. What
// is in the store does not change, and a digest over all of it says so; a server runs from there,
// without a network.
package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Package is an installed package of a registry, as a lock file keeps it.
type Package struct {
	// Source is the kind of registry: "npm".
	Source string `json:"source"`
	// Name and Version are the package's.
	Name    string `json:"name"`
	Version string `json:"version"`
	// Integrity is what the registry says of the package's archive, e.g. "sha512-...".
	Integrity string `json:"integrity"`
	// Digest is that of all files of the package and of what it needs; see [Digest].
	Digest string `json:"digest"`
	// Dir is the absolute path of its directory in the store.
	Dir string `json:"dir"`
	// Program is the name of the program in it that runs; "" is the one of its own name.
	Program string `json:"program,omitempty"`
}

// String returns the package as a person writes it: "npm:name@version".
func (p Package) String() string { return p.Source + ":" + p.Name + "@" + p.Version }

// Options say how packages are fetched. All fields but MinAge and Log are required.
type Options struct {
	// Launcher starts the package manager.
	Launcher *sandbox.Launcher
	// Store is the directory of all packages, an absolute path.
	Store string
	// Node and NPM are the absolute paths of node and of npm's program, a file of JavaScript.
	Node, NPM string
	// Registry is the URL of the registry, and Scopes those of scopes that have one of their own, such
	// as "@corp". No other host is contacted.
	Registry string
	Scopes   map[string]string
	// Certificates are files with certificates that the registry's may be signed by, besides
	// those of the system.
	Certificates []string
	// MinAge is how old a version must be, and each of what it needs.
	MinAge time.Duration
	// Log gets what the package manager prints, if it is not nil.
	Log io.Writer
}

// Reference is what a person asks for: "npm:name" or "npm:name@version".
type Reference struct{ Source, Name, Version string }

// namePattern and versionPattern are what npm allows, without what could be read as an option, a
// path or an address.
var (
	namePattern    = regexp.MustCompile(`^(@[a-z0-9][a-z0-9._~-]{0,63}/)?[a-z0-9][a-z0-9._~-]{0,127}$`)
	versionPattern = regexp.MustCompile(`^[0-9A-Za-z^~][0-9A-Za-z.+-]{0,63}$`)
)

// ParseReference reads a reference. A version may be exact, a range such as "^1.2.0", or a tag.
func ParseReference(text string) (Reference, error) {
	source, rest, found := strings.Cut(text, ":")
	if !found || source != "npm" {
		return Reference{}, fmt.Errorf("%q is not a package: expected npm:NAME or npm:NAME@VERSION", text)
	}
	r := Reference{Source: source, Name: rest}
	if at := strings.LastIndexByte(rest, '@'); at > 0 {
		r.Name, r.Version = rest[:at], rest[at+1:]
		if !versionPattern.MatchString(r.Version) {
			return Reference{}, fmt.Errorf("%q is not a version of a package: expected one such as 1.2.3, ^1.2.0 or latest", r.Version)
		}
	}
	if !namePattern.MatchString(r.Name) {
		return Reference{}, fmt.Errorf("%q is not the name of a package: expected one such as name or @scope/name, in lower case", r.Name)
	}
	return r, nil
}

// Fetch installs a package into the store and returns it. A package that is in the store already is
// checked, and fetched again if it has changed. The error is for an operator.
func Fetch(ctx context.Context, opts Options, r Reference) (Package, error) {
	if err := makeStore(opts.Store); err != nil {
		return Package{}, fmt.Errorf("make the store of packages: %w", err)
	}
	removeOld(opts.Store)
	temporary, err := os.MkdirTemp(opts.Store, ".fetch-")
	if err != nil {
		return Package{}, fmt.Errorf("make the store of packages: %w", err)
	}
	defer func() { _ = removeAll(temporary) }() // a failure leaves a directory that nothing uses
	dir := filepath.Join(temporary, "server")   // npm's lock has this name, which so is always the same
	if err := os.Mkdir(dir, 0o755); err != nil {
		return Package{}, fmt.Errorf("make the store of packages: %w", err)
	}
	if err := os.Chmod(temporary, 0o755); err != nil { //nolint:gosec // npm may run as another user
		return Package{}, fmt.Errorf("make the store of packages: %w", err)
	}
	if err := npm(ctx, opts, r, dir); err != nil {
		return Package{}, err
	}
	p, err := installed(r, dir)
	if err != nil {
		return Package{}, err
	}
	if err := seal(dir); err != nil {
		return Package{}, fmt.Errorf("store %s: %w", p, err)
	}
	if p.Digest, err = Digest(dir); err != nil {
		return Package{}, fmt.Errorf("store %s: %w", p, err)
	}
	p.Dir = filepath.Join(opts.Store, directory(p))
	if p.Verify() == nil {
		return p, nil
	}
	if err := removeAll(p.Dir); err != nil {
		return Package{}, fmt.Errorf("replace the changed package %s: %w", p, err)
	}
	if err := os.Rename(dir, p.Dir); err != nil {
		return Package{}, fmt.Errorf("store %s: %w", p, err)
	}
	return p, nil
}

// removeOld removes what attempts have left that were killed.
func removeOld(store string) {
	left, err := filepath.Glob(filepath.Join(store, ".fetch-*"))
	if err != nil {
		return // no store has a bad pattern
	}
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > fetchTimeout+time.Hour {
			_ = removeAll(path) // it is only in the way
		}
	}
}

// directory returns the name of a package's directory in the store: no two contents share one.
func directory(p Package) string {
	const short = 16
	sum := strings.TrimPrefix(p.Digest, "sha256:")
	return strings.ReplaceAll(strings.TrimPrefix(p.Name, "@"), "/", "-") + "-" + p.Version + "-" + sum[:min(short, len(sum))]
}

// makeStore makes the store's directory. Plugins of a root host run as other users and read from
// it; only its owner may write.
func makeStore(store string) error {
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	return os.Chmod(store, 0o755) //nolint:gosec // packages are public
}

// lockFile is what npm writes about what it installed.
type lockFile struct {
	Packages map[string]struct {
		Version   string `json:"version"`
		Integrity string `json:"integrity"`
	} `json:"packages"`
}

const modules = "node_modules"

// installed reads what npm has installed into dir.
func installed(r Reference, dir string) (Package, error) {
	var lock lockFile
	if err := readJSON(filepath.Join(dir, "package-lock.json"), &lock); err != nil {
		return Package{}, fmt.Errorf("read what npm has installed: %w", err)
	}
	entry, ok := lock.Packages[modules+"/"+r.Name]
	if !ok || entry.Version == "" || entry.Integrity == "" {
		return Package{}, fmt.Errorf("npm has not installed %s from the registry: its lock has no integrity for it", r.Name)
	}
	return Package{Source: r.Source, Name: r.Name, Version: entry.Version, Integrity: entry.Integrity}, nil
}

// maxJSON bounds a file of npm's, in bytes.
const maxJSON = 16 << 20

func readJSON(path string, v any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJSON+1))
	if err != nil {
		return err
	}
	if len(data) > maxJSON {
		return fmt.Errorf("%s is larger than %v", path, tool.ByteSize(maxJSON))
	}
	return json.Unmarshal(data, v)
}

// ProgramFile returns the absolute path of the package's program, a file that node runs: the one of its
// own name if it has several, or the one that is named.
func (p Package) ProgramFile(named string) (string, error) {
	var about struct {
		Name string          `json:"name"`
		Bin  json.RawMessage `json:"bin"`
	}
	root := filepath.Join(p.Dir, modules, filepath.FromSlash(p.Name))
	if err := readJSON(filepath.Join(root, "package.json"), &about); err != nil {
		return "", fmt.Errorf("read the programs of %s: %w", p, err)
	}
	programs := map[string]string{}
	var single string
	switch {
	case len(about.Bin) == 0:
	case json.Unmarshal(about.Bin, &single) == nil:
		programs[own(p.Name)] = single
	case json.Unmarshal(about.Bin, &programs) != nil:
		return "", fmt.Errorf("read the programs of %s: its package.json has a bin that is neither a text nor an object", p)
	}
	names := slices.Sorted(maps.Keys(programs))
	name := named
	switch {
	case name != "":
	case len(names) == 1:
		name = names[0]
	default:
		name = own(p.Name)
	}
	path, ok := programs[name]
	switch {
	case len(names) == 0:
		return "", fmt.Errorf("%s has no program: it is a library, not a server", p)
	case !ok:
		return "", fmt.Errorf("%s has no program %q; it has %s", p, name, strings.Join(names, ", "))
	case !filepath.IsLocal(path):
		return "", fmt.Errorf("%s has a program outside of itself: %q", p, path)
	}
	full := filepath.Join(root, path)
	if info, err := os.Stat(full); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s lacks its program %q", p, path)
	}
	return full, nil
}

// own returns the name of a package without its scope.
func own(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// Verify reports whether the package is in the store as it was installed. It reads all of it.
func (p Package) Verify() error {
	got, err := Digest(p.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the package %s is not in the store: %s is missing", p, p.Dir)
	case err != nil:
		return fmt.Errorf("read the package %s: %w", p, err)
	case got != p.Digest:
		return fmt.Errorf("the package %s in %s has changed since it was installed: its digest is %s, and the lock file has %s", p, p.Dir, got, p.Digest)
	}
	return nil
}

// Verifier returns a function that verifies a package of a lock file, as JSON; nil for nil.
func Verifier(text json.RawMessage) func() error {
	if text == nil {
		return nil
	}
	return func() error {
		p, err := Decode(text)
		if err != nil {
			return err
		}
		return p.Verify()
	}
}

// Decode reads a package of a lock file.
func Decode(text json.RawMessage) (Package, error) {
	var p Package
	if err := json.Unmarshal(text, &p); err != nil || !filepath.IsAbs(p.Dir) || p.Digest == "" {
		return Package{}, errors.New("the package in the lock file has no directory and digest: install it again with toolhost mcp update")
	}
	return p, nil
}
