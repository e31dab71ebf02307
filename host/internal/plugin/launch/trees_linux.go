package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is a bind that is not attached yet.
type tree struct {
	Bind

	fd     int
	dir    bool
	parent int // of a pinned one, to open again what has been replaced; else -1
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

// openTree opens what a path is, and not what has been put in its place since.
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

// reopen opens what has been put in the place of a pinned tree.
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

// ifLink returns errMoved if an error says that a path is a link by now.
func ifLink(err error) error {
	if errors.Is(err, unix.ELOOP) {
		return errMoved
	}
	return err
}

// treeOf clones what has been opened, and closes file.
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
	fd, err := unix.OpenTree(file, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	return tree{b, fd, kind == unix.S_IFDIR, parent}, err
}

// openPlace opens a path without following any link, also not its own.
func openPlace(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
}

// attach puts the trees where they belong.
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

// attach puts a tree on what a path is, which makePoint has found or made. A file that
// was replaced since it was opened cannot be attached: the new one is.
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

// attachAt puts a tree on what a path is.
func attachAt(path string, tree int) error {
	point, err := openPlace(path)
	if err == nil {
		err = unix.MoveMount(tree, "", point, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
		_ = unix.Close(point) // nothing is buffered
	}
	return err
}

// limit sets what the tree may be used for.
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
		return fmt.Errorf("set what it may be used for: %w", err)
	}
	return nil
}

// ifMoved returns errMoved if an error says that a path is gone, or a link by now.
func ifMoved(err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOENT) {
		return errMoved
	}
	return err
}

// pin binds every directory between path and the bind that it lies in onto
// itself: what is mounted somewhere cannot be renamed or removed.
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

// isMountPoint reports whether something is mounted at path already.
func isMountPoint(path string) bool {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &stat)
	return err == nil && stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
