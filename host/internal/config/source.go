package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/tools/lock"
	"github.com/toolhost/toolhost/internal/digest"
)

const (
	// maxFileBytes bounds a configuration file.
	maxFileBytes = 4 << 20
	// maxTextBytes bounds a file that file() reads.
	maxTextBytes = 1 << 20
)

// source holds the files of a configuration before they are parsed.
type source struct {
	// path is the absolute path of the file or directory. It identifies the
	// configuration.
	path string
	// dir is the absolute directory that relative paths are relative to.
	dir   string
	files []sourceFile
}

type sourceFile struct {
	name  string // as given to Load, for places
	bytes []byte
}

// readSource reads the files of a configuration.
func readSource(path string) (*source, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no configuration at %s: %w; create it, or name another one with --config", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	src := &source{path: absolute, dir: filepath.Dir(absolute)}
	names := []string{path}
	if info.IsDir() {
		src.dir = absolute
		if names, err = listFiles(path); err != nil {
			return nil, err
		}
	}
	trusted := names
	if _, err := os.Lstat(src.lockPath()); err == nil {
		trusted = append(slices.Clone(names), src.lockPath())
	}
	if err := checkWriters(trusted, os.Geteuid()); err != nil {
		return nil, err
	}
	var wrong []error
	for _, name := range names {
		b, err := readBounded(name, maxFileBytes)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("read configuration: %w", err))
			continue
		}
		src.files = append(src.files, sourceFile{name: name, bytes: b})
	}
	return src, errors.Join(wrong...)
}

// listFiles returns the *.hcl of a directory in lexical order.
func listFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var names []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".hcl" && !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("read configuration: no *.hcl file in directory %s", dir)
	}
	return names, nil
}

// readBounded reads a regular file of at most most bytes.
func readBounded(path string, most int) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > most {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than %d bytes", most)}
	}
	return b, nil
}

// paths returns the absolute paths of the files.
func (s *source) paths() []string {
	paths := make([]string, len(s.files))
	for i, f := range s.files {
		paths[i] = filepath.Join(s.dir, filepath.Base(f.name))
	}
	return paths
}

func (s *source) names() []string {
	names := make([]string, len(s.files))
	for i, f := range s.files {
		names[i] = f.name
	}
	return names
}

// digest returns the digest of the names and contents of the files.
func (s *source) digest() string {
	h := sha256.New()
	for _, f := range s.files {
		fmt.Fprintf(h, "%d %s %d ", len(f.name), f.name, len(f.bytes))
		h.Write(f.bytes)
	}
	return digest.Format(h.Sum(nil))
}

// contents returns the digest of the contents of the files, which stays when they are moved.
func (s *source) contents() string {
	var files [][]byte
	for _, f := range s.files {
		files = append(files, f.bytes)
	}
	return ContentsOf(files...)
}

// ContentsOf returns [Config.Contents] of a configuration with these files, in the order of their names.
func ContentsOf(files ...[]byte) string {
	h := sha256.New()
	for _, text := range files {
		fmt.Fprintf(h, "%d ", len(text))
		h.Write(text)
	}
	return digest.Format(h.Sum(nil))
}

// isDir reports whether the configuration is a directory.
func (s *source) isDir() bool { return s.dir == s.path }

// lockPath returns the path of the lock file.
func (s *source) lockPath() string { return lock.Path(s.path, s.isDir()) }

// abs resolves a path of the configuration.
func (s *source) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.dir, path)
}
