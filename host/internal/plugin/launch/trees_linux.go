package launch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is a bind that is not attached yet.
type tree struct {
	Bind

	fd     int
	dir    bool
	parent int // directory of a pinned bind, to reopen a replaced file; otherwise -1
}

func (m *Mounts) openTrees() ([]tree, error) {
	trees := make([]tree, 0, len(m.Binds))
	for _, b := range m.Binds {
		t, err := openTree(b)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("bind %s: %w", b.Path, err)
		}
		trees = append(trees, t)
	}
	return trees, nil
}

// openTree opens the file of a bind, so that a later replacement has no effect.
func openTree(b Bind) (tree, error) {
	parent := -1
	if b.Pin {
		var err error
		if parent, err = openPlace(parentOf(string(b.Path))); err != nil {
			return tree{}, ifLink(err)
		}
	}
	file, err := openPlace(string(b.Path))
	if err != nil {
		return tree{}, ifLink(err)
	}
	return treeOf(b, file, parent)
}

// reopen opens the file that has replaced a pinned one.
func (t *tree) reopen() error {
	name := string(t.Path)[len(parentOf(string(t.Path))):]
	file, err := unix.Openat2(t.parent, strings.TrimPrefix(name, "/"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return ifLink(err)
	}
	again, err := treeOf(t.Bind, file, t.parent)
	if err == nil {
		_ = unix.Close(t.fd) // nothing is buffered
		*t = again
	}
	return err
}

// ifLink returns errMoved if an error means that a path has become a link.
func ifLink(err error) error {
	if errors.Is(err, unix.ELOOP) {
		return errMoved
	}
	return err
}

// treeOf clones the mount of an open file, and closes the file.
func treeOf(b Bind, file, parent int) (tree, error) {
	defer func() { _ = unix.Close(file) }() // nothing is buffered
	var stat unix.Stat_t
	if err := unix.Fstat(file, &stat); err != nil {
		return tree{}, err
	}
	kind := stat.Mode & unix.S_IFMT
	if (kind == unix.S_IFLNK) != b.Link {
		return tree{}, errMoved
	}
	fd, err := cloneMount(file, unix.AT_RECURSIVE, 0)
	return tree{b, fd, kind == unix.S_IFDIR, parent}, err
}

// cloneMount returns a detached copy of the mount of an open file, with attributes.
func cloneMount(file int, flags uint, attributes uint64) (int, error) {
	mount, err := unix.OpenTree(file, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|flags)
	if err != nil || attributes == 0 {
		return mount, err
	}
	attr := unix.MountAttr{Attr_set: attributes}
	if err := unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		_ = unix.Close(mount) // nothing is buffered
		return -1, err
	}
	return mount, nil
}

// openPlace opens a path without following any link.
func openPlace(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
}

// attach mounts the trees at their paths.
func attach(root string, trees []tree) error {
	for i, t := range trees {
		path := root + string(t.Path)
		if err := makePoint(path, t.dir); err != nil {
			return err
		}
		if t.Pin {
			if err := pin(root, trees[:i], path); err != nil {
				return err
			}
		}
		if err := t.attach(path); err != nil {
			return fmt.Errorf("bind %s: %w", t.Path, err)
		}
		_ = unix.Close(t.fd) // nothing is buffered
		if t.parent >= 0 {
			_ = unix.Close(t.parent) // nothing is buffered
		}
	}
	return nil
}

// attach mounts a tree on a mount point that makePoint has found or made. If the file was
// replaced since it was opened, attach mounts the new one.
func (t *tree) attach(path string) error {
	const attempts = 100
	for n := 1; ; n++ {
		err := t.limit()
		if err != nil {
			return err
		}
		err = attachAt(path, t.fd)
		if !errors.Is(err, unix.ENOENT) || t.parent < 0 || n == attempts {
			return ifMoved(err)
		}
		if err := t.reopen(); err != nil && !errors.Is(err, unix.ENOENT) {
			return ifMoved(err)
		}
	}
}

// attachAt mounts a tree at a path.
func attachAt(path string, tree int) error {
	point, err := openPlace(path)
	if err == nil {
		err = unix.MoveMount(tree, "", point, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
		_ = unix.Close(point) // nothing is buffered
	}
	return err
}

// limit sets the permitted uses of the tree.
func (t *tree) limit() error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	for _, a := range []struct {
		allowed bool
		attr    uint64
	}{{t.Write, unix.MOUNT_ATTR_RDONLY}, {t.Exec, unix.MOUNT_ATTR_NOEXEC}, {t.Dev, unix.MOUNT_ATTR_NODEV}} {
		if !a.allowed {
			attr.Attr_set |= a.attr
		}
	}
	if err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("set its mount attributes: %w", err)
	}
	return nil
}

// ifMoved returns errMoved if an error means that a path is gone or has become a link.
func ifMoved(err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOENT) {
		return errMoved
	}
	return err
}

// pin mounts every directory between path and the bind that contains it on itself: a mount
// point cannot be renamed or removed.
func pin(root string, attached []tree, path string) error {
	top := ""
	for _, t := range attached {
		if at := root + string(t.Path); strings.HasPrefix(path, at+"/") && len(at) > len(top) {
			top = at
		}
	}
	if top == "" {
		return nil
	}
	var between []string
	for dir := parentOf(path); dir != top; dir = parentOf(dir) {
		between = append(between, dir)
	}
	for _, dir := range slices.Backward(between) {
		if isMountPoint(dir) {
			continue
		}
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("pin %s: %w", strings.TrimPrefix(dir, root), ifMoved(err))
		}
	}
	return nil
}

// isMountPoint reports whether path is a mount point.
func isMountPoint(path string) bool {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &stat)
	return err == nil && stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

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
