package roots

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/tool"
)

// renameByLink is renameNew for systems that lack it: a file gets its second name and loses
// the first. For a directory, and on file systems without hard links, it checks and then
// renames, which is not atomic.
func renameByLink(from int, oldName string, to int, newName string) error {
	var info unix.Stat_t
	if err := unix.Fstatat(from, oldName, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT == unix.S_IFREG {
		err := unix.Linkat(from, oldName, to, newName, 0)
		if err == nil {
			return unix.Unlinkat(from, oldName, 0)
		}
		if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.ENOSYS) {
			return err
		}
	}
	err := unix.Fstatat(to, newName, &info, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil {
		return unix.EEXIST
	}
	if err != unix.ENOENT {
		return err
	}
	return unix.Renameat(from, oldName, to, newName)
}

// renameOver renames a file between two open directories and replaces the file there.
func renameOver(from int, oldName string, to int, newName string) error {
	return unix.Renameat(from, oldName, to, newName)
}

// openSelf opens the directory itself, for renames and for syncing. The caller closes it.
func openSelf(dir *os.Root) (*os.File, error) {
	return dir.OpenFile(".", os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// syncDirectory makes renames in the directory durable. It ignores file systems that cannot do
// that.
func syncDirectory(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// confirm makes a change in the directories durable. An error does not undo the change.
func (t *Target) confirm(dirs ...*os.File) error {
	for _, dir := range dirs {
		err := syncDirectory(dir)
		if err == nil {
			continue
		}
		reason := err
		if errno, ok := errors.AsType[unix.Errno](err); ok {
			reason = errno // err's own text contains the host's path
		}
		return tool.Errorf(tool.Failed, "%s is changed, but the disk has not confirmed it (%v): the change may be lost if the machine stops", tool.VisibleName(t.String()), reason).
			WithHint("look at it before you try again, and tell the user that the disk reports errors").WithCause(err)
	}
	return nil
}

// mayWrite asks the system whether the process may write to a name in the open directory.
func mayWrite(dir *os.File, name string) error {
	return unix.Faccessat(int(dir.Fd()), name, unix.W_OK, 0)
}
