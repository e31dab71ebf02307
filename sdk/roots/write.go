package roots

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

// WriteOptions are the settings of [Target.Write]. The zero value writes a new file or
// replaces the content of an existing file.
type WriteOptions struct {
	// Create makes an existing file an error.
	Create bool
	// Append adds the content after the existing content.
	Append bool
}

// Writable returns the reason why the place cannot be written, or nil. It refuses
// directories, FIFOs, sockets and devices, and files with several hard links, because a
// write would change only one of the names. Writable changes nothing.
func (t *Target) Writable() error {
	if t.opts.Read {
		return t.roots.protected(t.at)
	}
	dir, err := t.directory()
	if err != nil {
		return err
	}
	if t.info != nil {
		if err := t.replaceable(); err != nil {
			return err
		}
		err := mayWrite(dir, t.base)
		if errors.Is(err, fs.ErrNotExist) {
			return t.replaced()
		}
		if err != nil {
			return t.explain(err)
		}
	}
	if err := mayWrite(dir, "."); err != nil {
		return t.explain(err)
	}
	return nil
}

// replaceable refuses files that are not regular or have several names.
func (t *Target) replaceable() error {
	if !t.info.Mode().IsRegular() {
		return tool.Errorf(tool.Failed, "Failed to write file: it is a %s, not a regular file", Kind(t.info.Mode()))
	}
	if stat, ok := t.info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		return tool.Errorf(tool.Failed, "Failed to write file: it has %d hard links, and a change would reach only one of them", stat.Nlink)
	}
	return nil
}

// exists returns the error for a place that is taken.
func (t *Target) exists() *tool.Error {
	return tool.Errorf(tool.Failed, "Failed to write file: %s", syscall.EEXIST.Error())
}

// Write writes content to the place. If the file has changed since the target was
// locked, Write returns [tool.Conflict] and writes nothing. The content is durable when
// Write returns. Write keeps the mode and owner of an existing file as far as the system
// allows, but not access control lists and extended attributes. Lock the target again
// before another change.
func (t *Target) Write(content []byte, opts WriteOptions) error {
	if t.info != nil && opts.Create {
		return t.exists()
	}
	if err := t.Writable(); err != nil {
		return err
	}
	return t.replace(newFile, func(f *os.File) error {
		if opts.Append && t.info != nil {
			if err := t.copyOld(f); err != nil {
				return err
			}
		}
		_, err := io.Copy(f, bytes.NewReader(content))
		return err
	})
}

// newFile is the mode of a new file, limited by that of its directory.
const newFile fs.FileMode = 0o666

func (t *Target) copyOld(to *os.File) error {
	from, err := t.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}

// replace fills a temporary file and moves it to the place. On error, the place is unchanged.
func (t *Target) replace(mode fs.FileMode, fill func(*os.File) error) (err error) {
	made, err := t.makeParents()
	if err != nil {
		return err
	}
	defer func() { made.end(err) }()
	t.roots.writers.sweep(t.dir)
	if t.info != nil {
		mode = 0o600 // it gets its mode after its owner
	}
	temp, err := newTemporary(t.dir, mode)
	if err != nil {
		return t.explain(err)
	}
	defer temp.discard()
	if err := fill(temp.File); err != nil {
		return t.explain(err)
	}
	if t.info != nil {
		keepOwner(temp.File, t.info)
	} else if err := temp.Chmod(t.inherited(mode)); err != nil {
		return t.explain(err)
	}
	if err := temp.Sync(); err != nil {
		return t.explain(err)
	}
	return t.commit(temp)
}

// keepOwner gives f the owner and mode of another file where the system allows: only root can
// give files away.
func keepOwner(f *os.File, like fs.FileInfo) {
	mode := like.Mode().Perm() | like.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)
	own, err := f.Stat()
	if err != nil {
		return // keep it private
	}
	want, wanted := like.Sys().(*syscall.Stat_t)
	has, known := own.Sys().(*syscall.Stat_t)
	if wanted && known && (want.Uid != has.Uid || want.Gid != has.Gid) && f.Chown(int(want.Uid), int(want.Gid)) != nil {
		mode &= fs.ModePerm // a set-user-ID program must not run as another account
		_ = f.Chown(-1, int(want.Gid))
	}
	_ = f.Chmod(mode)
}

// commit gives the temporary file its name, if the place is unchanged.
func (t *Target) commit(temp *temporary) error {
	dir, err := t.put(temp)
	if err != nil {
		return err
	}
	return t.confirm(dir)
}

// put is commit without durability: the caller syncs the directory that it returns.
func (t *Target) put(temp *temporary) (*os.File, error) {
	dir, err := t.directory()
	if err != nil {
		return nil, err
	}
	defer lockDirectory(dir)()
	if t.info == nil {
		err = renameNew(int(dir.Fd()), temp.name, int(dir.Fd()), t.base)
	} else if err = t.unchanged(); err == nil {
		err = t.dir.Rename(temp.name, t.base)
	}
	if errors.Is(err, syscall.EEXIST) {
		return nil, t.replaced().WithCause(err)
	}
	if err != nil {
		return nil, t.explain(err)
	}
	temp.name = ""
	return dir, nil
}

// unchanged returns an error if the place has changed.
func (t *Target) unchanged() error {
	now, err := t.dir.Lstat(t.base)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !sameState(now, t.info) {
		return t.replaced()
	}
	return err
}

// sameState reports whether two descriptions are of the same unchanged file or directory. The
// inode's change time reveals a writer that resets the modification time.
func sameState(a, b fs.FileInfo) bool {
	if a.IsDir() {
		return os.SameFile(a, b)
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode() && changeTime(a) == changeTime(b)
}
