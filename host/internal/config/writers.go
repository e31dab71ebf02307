package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// checkWriters refuses a configuration that others than root and the given
// user can change: it names the programs that the host runs. The error tells
// everything that is wrong. A symbolic link counts with the directories at
// both of its ends.
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
	if owner := ownerOf(info); owner != 0 && owner != uid {
		return fmt.Errorf("%s belongs to user %d, who could make the host run any program: expected root or %d, the user of this host; "+
			"chown it, or name another configuration with --config", place, owner, uid)
	}
	// In a directory with the sticky bit, others cannot exchange the files of
	// this user.
	if mode := info.Mode(); mode.Perm()&0o022 != 0 && (!mode.IsDir() || mode&os.ModeSticky == 0) {
		return fmt.Errorf("%s can be written by others (mode %v), who could make the host run any program: chmod go-w %s",
			place, mode.Perm(), place)
	}
	return nil
}

// ownerOf returns the user that a file belongs to.
func ownerOf(info os.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1 // nobody
}
