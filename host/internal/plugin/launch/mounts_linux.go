package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// newRoot is the directory on which a minimal root is built before it becomes the root.
// Every system has it.
const newRoot = "/tmp"

// make changes the file system that this process sees. The process needs its own mount
// namespace.
func (m *Mounts) make(script bool) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return inLayer("mounts", "make the mounts private", err)
	}
	// Open everything that is bound before another mount covers it.
	trees, err := m.openTrees()
	if errors.Is(err, errMoved) {
		return err // mounts are available nevertheless
	}
	if err != nil {
		return inLayer("mounts", "set up the file system", err)
	}
	program, err := protectProgram()
	if err != nil {
		return inLayer("mounts", "open the program read-only", err)
	}
	masks, err := m.makeMasks()
	if err != nil {
		return inLayer("mounts", "set up the file system", err)
	}
	root := ""
	if m.Minimal {
		root = newRoot
		err = mountTmpfs(newRoot, "size=4m,nr_inodes=16k,mode=0755", unix.MS_NOSUID|unix.MS_NODEV)
	} else {
		err = makeReadOnly()
	}
	if err != nil {
		return inLayer("mounts", "set up the file system", err)
	}
	for _, step := range []struct {
		layer string
		do    func(root string) error
	}{
		{"mounts", m.hide},
		{"mounts", m.mountTmp},
		{"mounts", func(root string) error { return attach(root, trees) }},
		{"mounts", func(root string) error { return m.mask(root, trees, masks) }},
		{"mounts", m.link},
		{"mounts", m.mountPty},
		{"mounts", func(root string) error { return program.attach(root, script) }},
		{"mounts", m.seal},
		{"proc", m.mountProc},
	} {
		err := step.do(root)
		if errors.Is(err, errMoved) {
			return err
		}
		if err != nil {
			return inLayer(step.layer, "set up the file system", err)
		}
	}
	if m.Minimal {
		return inLayer("mounts", "change the root directory", enter(root))
	}
	return nil
}

// programMount is the read-only mount of the program alone, not attached yet. mount is -1 if
// the program has no name.
type programMount struct {
	path  string
	mount int
}

// protectProgram opens the program again through a read-only mount. The mount through
// which the host opened it may be writable, and /proc/self/exe leads to the file through
// that mount, even if all other mounts are read-only.
func protectProgram() (programMount, error) {
	none := programMount{mount: -1}
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(ProgramFD))
	if err != nil {
		return none, err
	}
	file, err := openPlace(path)
	if err != nil {
		return none, nil // it has no name, so it is not started again
	}
	defer func() { _ = unix.Close(file) }() // nothing is buffered
	var program, named unix.Stat_t
	if err := unix.Fstat(ProgramFD, &program); err != nil {
		return none, err
	}
	if err := unix.Fstat(file, &named); err != nil {
		return none, err
	}
	if program.Dev != named.Dev || program.Ino != named.Ino {
		return none, nil // another file has its name
	}
	mount, err := cloneMount(file, 0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return none, err
	}
	again, err := unix.Open("/proc/self/fd/"+strconv.Itoa(mount), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return none, err
	}
	defer func() { _ = unix.Close(again) }() // nothing is buffered
	flags, err := unix.FcntlInt(ProgramFD, unix.F_GETFD, 0)
	if err != nil {
		return none, err
	}
	if err := unix.Dup3(again, ProgramFD, unix.O_CLOEXEC); err != nil {
		return none, err
	}
	_, err = unix.FcntlInt(ProgramFD, unix.F_SETFD, flags)
	return programMount{path, mount}, err
}

// attach gives a script its own path in the new file system: Node.js, for one, follows the
// link /proc/self/fd/3 and reads what it finds there.
func (p programMount) attach(root string, script bool) error {
	if p.mount < 0 {
		return nil
	}
	defer func() { _ = unix.Close(p.mount) }() // nothing is buffered
	if !script {
		return nil
	}
	path := root + p.path
	if err := makePoint(path, false); err != nil {
		return err
	}
	if err := attachAt(path, p.mount); err != nil {
		return fmt.Errorf("bind %s: %w", p.path, ifMoved(err))
	}
	return nil
}

// makeReadOnly makes all present mounts read-only and disables their devices.
func makeReadOnly() error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(-1, "/", unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("make the file system read-only: %w", err)
	}
	return nil
}

// hide mounts an empty file system over each hidden directory. The binds below are
// mounted on top of it.
func (m *Mounts) hide(root string) error {
	if m.Minimal {
		return nil // it is not there
	}
	for _, dir := range m.Hidden {
		if _, err := os.Stat(string(dir)); err != nil {
			continue
		}
		if err := mountTmpfs(root+string(dir), "size=1m,nr_inodes=4k,mode=0755", unix.MS_NOSUID|unix.MS_NODEV); err != nil {
			return fmt.Errorf("hide %s: %w", dir, err)
		}
	}
	return nil
}

// seal makes the file systems of hidden directories read-only, after the binds were
// mounted.
func (m *Mounts) seal(root string) error {
	if m.Minimal {
		return nil
	}
	for _, dir := range m.Hidden {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		err := unix.MountSetattr(unix.AT_FDCWD, root+string(dir), 0, &attr)
		// The directory may be missing, or a temporary directory may cover it.
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("hide %s: %w", dir, err)
		}
	}
	return nil
}

// mountTmp mounts one memory file system on all temporary directories.
func (m *Mounts) mountTmp(root string) error {
	if len(m.Tmp) == 0 {
		return nil
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if !m.TmpExec {
		flags |= unix.MS_NOEXEC
	}
	// One inode per 16 KiB: many empty files take memory too.
	options := "mode=1777,size=" + strconv.FormatUint(m.TmpSize, 10) + ",nr_inodes=" + strconv.FormatUint(max(m.TmpSize>>14, 256), 10)
	first := root + string(m.Tmp[0])
	if err := makeDir(first); err != nil {
		return err
	}
	if err := mountTmpfs(first, options, flags); err != nil {
		return err
	}
	for _, dir := range m.Tmp[1:] {
		if err := makeDir(root + string(dir)); err != nil {
			if !m.Minimal && errors.Is(err, unix.EROFS) {
				continue // the system has no such directory
			}
			return err
		}
		if err := unix.Mount(first, root+string(dir), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", dir, err)
		}
	}
	return nil
}

// link creates the symbolic links of a minimal root.
func (m *Mounts) link(root string) error {
	for _, l := range m.Links {
		path := root + string(l.Path)
		if err := makeDir(parentOf(path)); err != nil {
			return err
		}
		if err := os.Symlink(string(l.Target), path); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// mountPty gives the process its own pseudo-terminals.
func (m *Mounts) mountPty(root string) error {
	if !m.Pty {
		return nil
	}
	pts := root + "/dev/pts"
	if err := makeDir(pts); err != nil {
		return err
	}
	if err := unix.Mount("devpts", pts, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("mount /dev/pts: %w", err)
	}
	ptmx := root + "/dev/ptmx"
	if m.Minimal {
		return os.Symlink("pts/ptmx", ptmx)
	}
	if err := unix.Mount(pts+"/ptmx", ptmx, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind /dev/ptmx: %w", err)
	}
	return nil
}

// mountProc gives the process a /proc, or none.
func (m *Mounts) mountProc(root string) error {
	proc := root + "/proc"
	if m.Minimal {
		if err := makeDir(proc); err != nil {
			return err
		}
	}
	switch {
	case m.Proc:
		// Read-only, because user 0 could change the system's settings.
		return unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
	case m.HostProc:
		return nil // it is among the binds
	case m.Minimal:
		return nil // it is empty
	}
	return mountTmpfs(proc, "size=4k,mode=0555", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY)
}

// enter permanently makes root the read-only root directory.
func enter(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	// pivot_root(2) mounts the old root on the new one.
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the old one: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	return unix.MountSetattr(-1, "/", 0, &attr)
}

func mountTmpfs(path, options string, flags uintptr) error {
	if err := unix.Mount("tmpfs", path, "tmpfs", flags, options); err != nil {
		return fmt.Errorf("mount a memory file system: %w", err)
	}
	return nil
}

// makePoint creates a mount point if there is none.
func makePoint(path string, dir bool) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if dir {
		return makeDir(path)
	}
	if err := makeDir(parentOf(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	return f.Close()
}

// makeDir creates a directory that others can enter, whatever the umask.
func makeDir(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	before := unix.Umask(0o022)
	defer unix.Umask(before)
	return os.MkdirAll(path, 0o755)
}

// parentOf returns the directory of a clean absolute path. Package path/filepath would
// be initialized after most of the host.
func parentOf(path string) string {
	return path[:max(strings.LastIndexByte(path, '/'), 1)]
}
