package launch

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// masks are open: what is mounted over what the program must not see. Both are empty, and
// nobody may read them.
type masks struct{ file, dir int }

// makeMasks makes the masks in a memory file system of their own. It is mounted where
// others come on top of it.
func (m *Mounts) makeMasks() (made masks, err error) {
	if len(m.Masked) == 0 {
		return masks{}, nil
	}
	if err := mountTmpfs(newRoot, "size=4k,nr_inodes=8,mode=0700", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC); err != nil {
		return masks{}, err
	}
	const file, dir = newRoot + "/file", newRoot + "/directory"
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0)
	if err != nil {
		return masks{}, err
	}
	if err := f.Close(); err != nil {
		return masks{}, err
	}
	if err := os.Mkdir(dir, 0); err != nil {
		return masks{}, err
	}
	if made.file, err = openPlace(file); err != nil {
		return masks{}, err
	}
	made.dir, err = openPlace(dir)
	return made, err
}

// mask mounts the masks.
func (m *Mounts) mask(root string, attached []tree, with masks) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC}
	for _, name := range m.Masked {
		path := root + string(name)
		info, err := os.Lstat(path)
		if err != nil {
			continue // it is not there
		}
		if err := pin(root, attached, path); err != nil {
			return err
		}
		what := with.file
		if info.IsDir() {
			what = with.dir
		}
		tree, err := unix.OpenTree(what, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
		if err != nil {
			return fmt.Errorf("mask %s: %w", name, err)
		}
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr)
		if err == nil {
			err = ifMoved(attachAt(path, tree))
		}
		_ = unix.Close(tree) // nothing is buffered
		if errors.Is(err, unix.ENOTDIR) {
			err = errMoved // it was a directory, or is one now
		}
		if err != nil {
			return fmt.Errorf("mask %s: %w", name, err)
		}
	}
	if len(m.Masked) > 0 {
		_, _ = unix.Close(with.file), unix.Close(with.dir) // nothing is buffered
	}
	return nil
}
