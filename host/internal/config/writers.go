package config

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// checkWriters refuses a configuration that others than root and the given
// user can change: it names the programs that the host runs. A symbolic link
// counts with the directories at both of its ends.
func checkWriters(path string, uid int) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	places := []string{target, filepath.Dir(target)}
	if dir := filepath.Dir(path); dir != places[1] {
		places = append(places, dir)
	}
	for _, place := range places {
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
