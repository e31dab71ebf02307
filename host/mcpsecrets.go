package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/config/bridged"
)

// secretFile is a secret block whose value is in a file of its own, below secretsDir.
type secretFile struct {
	name, dir, value string
}

func (f secretFile) block() bridged.SecretBlock {
	return bridged.SecretBlock{Name: f.name, File: filepath.Join(f.dir, f.name)}
}

// secretsDir returns the directory of the secrets of MCP servers. It is in the state directory, where no
// plugin can read it.
func secretsDir(cfg *config.Config) string { return filepath.Join(cfg.StateDir, "mcp-secrets") }

// secretWriter moves the secrets of one server into files.
type secretWriter struct {
	server, dir string
	files       []secretFile
	wrong       error
}

// variableName and headerName match the names that a server's variables and headers may have.
var nameOfValue = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,99}$`)

// typed returns values that a person typed: {{secret:NAME}} is a secret block.
func (w *secretWriter) typed(values map[string]string, secret func(name, value string) bool) map[string]bridged.Value {
	return w.all(values, bridged.ParseValue, secret)
}

// all reads values, and moves those without calls that are secrets into files.
func (w *secretWriter) all(values map[string]string, read func(string) bridged.Value, secret func(name, value string) bool) map[string]bridged.Value {
	if len(values) == 0 {
		return nil
	}
	out := make(map[string]bridged.Value, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !nameOfValue.MatchString(name) {
			w.wrong = errors.Join(w.wrong, fmt.Errorf("%q cannot be the name of a variable or a header", line(name)))
			continue
		}
		out[name] = read(values[name])
		if text, plain := out[name].Plain(); plain && text != "" && secret(name, text) {
			f := secretFile{secretName(w.server, name), w.dir, text}
			w.files = append(w.files, f)
			out[name] = bridged.Secret(f.name)
		}
	}
	return out
}

// secretName returns the name of the secret block for a variable or a header of a server. A long one ends
// with a digest.
func secretName(server, name string) string {
	const most = 64
	full := server + "." + name
	if len(full) <= most {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	const short = 8
	return full[:most-short-1] + "-" + hex.EncodeToString(sum[:short/2])
}

// secretWords are parts of the names of variables that hold secrets.
var secretWords = regexp.MustCompile(`(?i)token|key|secret|passw|auth|cred|cookie|session|dsn|pat$`)

// looksSecret reports whether a variable seems to hold a secret.
func looksSecret(name, value string) bool {
	return secretWords.MatchString(name) || strings.Contains(value, "://") && strings.Contains(value, "@")
}

// isCredential reports that every header may be one.
func isCredential(string, string) bool { return true }

// writeSecrets writes the values of secrets into files that only this account can read. undo removes
// those that were written.
func writeSecrets(all []addition) (undo func() error, err error) {
	var written []secretFile
	undo = func() error {
		var failed error
		for _, f := range written {
			failed = errors.Join(failed, os.Remove(filepath.Join(f.dir, f.name)))
		}
		return failed
	}
	for _, s := range all {
		for _, f := range s.secrets {
			if err := f.write(); err != nil {
				return undo, errors.Join(fmt.Errorf("write a secret: %w", err), undo())
			}
			written = append(written, f)
		}
	}
	return undo, nil
}

// write writes the file, which may be left of a server that was removed by hand.
func (f secretFile) write() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it has no data of its own
	if err := root.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := root.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(f.value + "\n")
	return errors.Join(err, file.Sync(), file.Close())
}

// secretsOf returns the names of the secrets that were written for a server.
func secretsOf(cfg *config.Config, server string) (names []string) {
	found, err := filepath.Glob(filepath.Join(secretsDir(cfg), server+".*"))
	if err != nil {
		return nil // the name of a plugin is no bad pattern
	}
	for _, path := range found {
		names = append(names, filepath.Base(path))
	}
	return names
}
