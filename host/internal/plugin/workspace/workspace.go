// Package workspace knows the directories in which the calls of users work, and makes those of
// single users.
package workspace

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
)

// Dirs are the directories in which users work: one for everybody, or one for each user. The zero
// value has none.
type Dirs struct {
	// Shared is everybody's directory, absolute and clean; "" if each user has one.
	Shared string
	// Parent is the directory of the users' directories, absolute and clean. Their names are
	// Prefix, the user's name and Suffix.
	Parent, Prefix, Suffix string
	// Template is a directory whose content a new directory of a user begins with: at most 10,000
	// entries and 1 GiB; "" means empty.
	Template string
}

// PerUser reports whether each user has a directory.
func (d Dirs) PerUser() bool { return d.Parent != "" }

// Top returns the directory that holds everything that users work on; "" if there is none.
func (d Dirs) Top() string { return cmp.Or(d.Shared, d.Parent) }

// String describes the directories, for people.
func (d Dirs) String() string {
	if !d.PerUser() {
		return d.Shared
	}
	return filepath.Join(d.Parent, d.Prefix+"${caller.user}"+d.Suffix)
}

// maxName bounds the name of a user's directory, in bytes. File systems take 255.
const maxName = 128

// Of returns the absolute path of the directory of a user, which may not exist yet; "" if nobody
// has one. The error says why the user cannot have one.
func (d Dirs) Of(user string) (string, error) {
	if !d.PerUser() {
		return d.Shared, nil
	}
	if err := checkName(user); err != nil {
		return "", err
	}
	name := d.Prefix + user + d.Suffix
	if len(name) > maxName {
		return "", fmt.Errorf("the name of the user's directory would have %d characters, at most %d are possible", len(name), maxName)
	}
	return filepath.Join(d.Parent, name), nil
}

// checkName returns an error if a user's name cannot be a part of a directory's name. Only names
// are possible that mean one thing to people, to every file system and to every program.
func checkName(user string) error {
	ok := user != "" && len(user) <= maxName && user[0] != '.' && user[0] != '-'
	for i := 0; i < len(user) && ok; i++ {
		c := user[i]
		ok = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._-@+", c) >= 0
	}
	if !ok {
		return fmt.Errorf("the user %q cannot have a directory: expected letters a to z, digits, and . _ - @ + but not first, at most %d characters", display.Printable(user, maxName), maxName)
	}
	return nil
}
