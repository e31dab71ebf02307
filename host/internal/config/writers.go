package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// checkWriters refuses a configuration that an account other than root and the given
// user can change, since it names the programs that the host runs. The error lists
// every such file. For a symbolic link, it checks the directories at both ends.
func checkWriters(files []string, uid int) error {
	var places []string
	var wrong []error
	for _, file := range files {
		target, err := filepath.EvalSymlinks(file)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("read configuration: %w", err))
			continue
		}
		places = append(places, target, filepath.Dir(target), filepath.Dir(file))
	}
	slices.Sort(places)
	for _, place := range slices.Compact(places) {
		if err := checkPlace(place, uid); err != nil {
			wrong = append(wrong, fmt.Errorf("read configuration: %w", err))
		}
	}
	return errors.Join(wrong...)
}

// checkPlace checks who can write to one file or directory.
func checkPlace(place string, uid int) error {
	info, err := os.Stat(place)
	if err != nil {
		return err
	}
	owner, group := ownersOf(info)
	if owner != 0 && owner != uid {
		return fmt.Errorf("%s belongs to user %d, who could make the host run any program: expected root or %d, the user of this host; "+
			"chown it, or name another configuration with --config", place, owner, uid)
	}
	if othersCanWrite(info.Mode(), owner, group) {
		return fmt.Errorf("other accounts can write %s (mode %v) and make the host run any program: chmod go-w %s",
			place, info.Mode().Perm(), place)
	}
	return nil
}

// othersCanWrite reports whether an account other than root and the owner can change a
// file, or replace the files in a directory.
//
// On most Linux systems each user has a private group of the same number, and files
// are often group-writable (umask 002), which lets no other account in. Root has no
// private group: other accounts may be in its group.
func othersCanWrite(mode os.FileMode, owner, group int) bool {
	if mode.IsDir() && mode&os.ModeSticky != 0 {
		return false // others cannot replace the files of this user
	}
	private := owner == group && owner != 0
	return mode.Perm()&0o002 != 0 || mode.Perm()&0o020 != 0 && !private
}

// ownersOf returns the user and the group that a file belongs to.
func ownersOf(info os.FileInfo) (user, group int) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid), int(stat.Gid)
	}
	return -1, -1 // unknown
}

// checkKeeper refuses a directory whose entries an account other than root and the given user can
// make, or that such an account can exchange for another. Unlike a directory on its path, the
// directory itself may not be sticky.
func checkKeeper(dir string, uid int) error {
	places, err := placesOn(dir)
	if err != nil {
		return err
	}
	for i, place := range places {
		info, err := os.Lstat(place)
		if err != nil {
			return err
		}
		owner, group := ownersOf(info)
		last := i == len(places)-1
		switch {
		case owner != 0 && owner != uid:
			return fmt.Errorf("%s belongs to user %d, who could exchange what is in it: expected root or %d, the user of this host; chown it, or name another directory", place, owner, uid)
		case info.Mode()&os.ModeSymlink != 0: // has no mode of its own
		case last && info.Mode().Perm()&0o022 != 0, othersCanWrite(info.Mode(), owner, group):
			return fmt.Errorf("other accounts can make files in %s (mode %v): run chmod go-w %s", place, info.Mode().Perm(), place)
		}
	}
	return nil
}

// maxLinks bounds the symbolic links on a path, as Linux does.
const maxLinks = 40

// placesOn returns the directories and symbolic links that the system passes through on an absolute
// path, in this order. The last one is the directory itself.
func placesOn(path string) ([]string, error) {
	at, rest := "/", strings.Split(path, "/")
	places := []string{at}
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			places = append(places, at)
			continue
		}
		next := filepath.Join(at, name)
		places = append(places, next)
		info, err := os.Lstat(next)
		if err != nil {
			return nil, err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return nil, fmt.Errorf("%s: %w", path, syscall.ELOOP)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return nil, err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	if places[len(places)-1] != at {
		places = append(places, at)
	}
	return places, nil
}
