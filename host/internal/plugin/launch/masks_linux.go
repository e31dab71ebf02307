package launch

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// masks are the open files that hide forbidden paths: an empty file and an empty directory,
// which the program may not read.
type masks struct{ file, dir int }

// makeMasks makes the masks in their own memory file system, which later mounts cover.
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

// mask mounts the masks on the masked paths.
func (m *Mounts) mask(root string, attached []tree, with masks) error {
	for _, name := range m.Masked {
		path := root + string(name)
		info, err := os.Lstat(path)
		if err != nil {
			continue // it does not exist
		}
		if err := pin(root, attached, path); err != nil {
			return err
		}
		what := with.file
		if info.IsDir() {
			what = with.dir
		}
		tree, err := cloneMount(what, 0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
		if err != nil {
			return fmt.Errorf("mask %s: %w", name, err)
		}
		err = ifMoved(attachAt(path, tree))
		_ = unix.Close(tree) // nothing is buffered
		if errors.Is(err, unix.ENOTDIR) {
			err = errMoved // a directory has become a file, or a file a directory
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
