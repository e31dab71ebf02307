package roots

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/sensitive"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxEntries is how many entries of one directory are read; a directory with more is an
	// error.
	maxEntries = 200_000
	// readBatch is how many entries are read between checks of the context.
	readBatch = 1024
	// openDir are the flags that open a directory and nothing else.
	openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
)

// Dir is an open directory below the folders, for fast access to many files. Files
// are opened by their name in the directory: paths are not resolved again and
// symbolic links are not followed, so renaming a directory above or placing a link
// does not lead outside. Its methods are safe for concurrent use, except [Dir.Read]
// and [Dir.Close].
type Dir struct {
	roots   *Roots
	at      place
	fd      int
	secrets sensitive.Coverage
}

// DirEntry is a name in a directory.
type DirEntry struct {
	Name string
	// Type is the kind of file, as in [fs.FileMode.Type].
	Type fs.FileMode
}

// Info describes a file.
type Info struct {
	// Mode is the kind and the permissions of the file.
	Mode fs.FileMode
	// Size is in bytes.
	Size int64
	// Modified is the time of the last change of the content.
	Modified time.Time
}

// OpenDir opens a directory. It follows symbolic links that stay below the folders.
// If each is not nil, OpenDir calls it with the directories above, the folder first;
// they are closed when each returns. The caller closes the directory.
func (r *Roots) OpenDir(name string, each func(*Dir)) (*Dir, error) {
	at, err := r.resolve(name, true)
	if err != nil {
		return nil, err
	}
	return r.openDirectory(at, each)
}

// openFolder opens a folder.
func (r *Roots) openFolder(f *folder) (*Dir, error) {
	self, err := f.root.Open(".")
	if err != nil {
		return nil, r.explainDirectory(place{f, "."}.String(), err)
	}
	defer self.Close()
	d := &Dir{roots: r, at: place{f, "."}, secrets: f.secrets}
	if d.fd, err = unix.Openat(int(self.Fd()), ".", openDir, 0); err != nil {
		return nil, r.explainDirectory(place{f, "."}.String(), err)
	}
	return d, nil
}

// openDirectory opens a place that has no links in its path and is not refused, one
// directory after the other.
func (r *Roots) openDirectory(at place, each func(*Dir)) (*Dir, error) {
	d, err := r.openFolder(at.folder)
	if err != nil {
		return nil, err
	}
	if at.rel == "." {
		return d, nil
	}
	for part := range strings.SplitSeq(at.rel, "/") {
		if each != nil {
			each(d)
		}
		next, err := d.enter(part) // may be a secret directory with an allowed file
		_ = d.Close()
		if err != nil {
			return nil, err
		}
		d = next
	}
	return d, nil
}

// Path returns the path of the directory for results and calls; see
// [Roots.Display].
func (d *Dir) Path() string { return d.at.String() }

// Rel returns the path relative to the folder, with slashes; "" for the folder.
func (d *Dir) Rel() string {
	if d.at.rel == "." {
		return ""
	}
	return d.at.rel
}

// below returns the path of a name in the directory for results.
func (d *Dir) below(name string) string { return Join(d.Path(), name) }

// Join does the same as [path.Join] for a name that is clean.
func Join(dir, name string) string {
	if dir == "" || dir == "." {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

// Secret reports whether the name usually belongs to a file with secrets and is not allowed.
// Such files and directories are not opened.
func (d *Dir) Secret(name string) bool {
	return d.secrets.Covers(name) && !d.roots.allows(place{d.at.folder, Join(d.at.rel, name)})
}

// forbids reports whether the name is forbidden, and so treated as missing. The directory
// itself is not forbidden.
func (d *Dir) forbids(name string) bool {
	return len(d.roots.forbidden) > 0 && d.roots.forbids(place{d.at.folder, Join(d.at.rel, name)})
}

// checked refuses text that is not a name, forbidden names, and secrets.
func (d *Dir) checked(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return d.roots.denied(name)
	}
	if d.forbids(name) {
		return d.roots.forbiddenPath(d.below(name))
	}
	if d.Secret(name) {
		return d.roots.secret(d.below(name))
	}
	return nil
}

// OpenDir opens a directory in d. The caller closes it.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	if err := d.checked(name); err != nil {
		return nil, err
	}
	return d.enter(name)
}

// enter opens a directory in d, which may be a secret.
func (d *Dir) enter(name string) (*Dir, error) {
	fd, err := retry(func() (int, error) { return unix.Openat(d.fd, name, openDir, 0) })
	if err != nil {
		return nil, d.roots.explainDirectory(d.below(name), err)
	}
	return &Dir{roots: d.roots, at: place{d.at.folder, Join(d.at.rel, name)}, fd: fd, secrets: d.secrets.Enter(name)}, nil
}

// Open opens a regular file in d. It refuses files of other kinds and does not block
// on them. The caller closes the file.
func (d *Dir) Open(name string) (*File, error) {
	fd, size, err := d.open(name, d.below(name))
	if err != nil {
		return nil, err
	}
	return &File{fd: fd, size: size}, nil
}

// open is Open with a descriptor. shown is the name in messages.
func (d *Dir) open(name, shown string) (fd int, size int64, err error) {
	if err := d.checked(name); err != nil {
		return -1, 0, err
	}
	fd, err = retry(func() (int, error) {
		return unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, 0, d.roots.explain(shown, err)
	}
	var stat unix.Stat_t
	switch err = unix.Fstat(fd, &stat); {
	case err != nil:
		err = d.roots.explain(shown, err)
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		err = notRegular(fileMode(&stat))
	default:
		err = d.roots.unlinked(shown, &stat, d.secrets.Covers(name))
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, 0, err
	}
	return fd, stat.Size, nil
}

// Info describes the file of the given name, which may be a secret. It does not
// follow a symbolic link.
func (d *Dir) Info(name string) (Info, error) {
	if d.forbids(name) {
		return Info{}, d.roots.forbiddenPath(d.below(name))
	}
	return d.info(name)
}

// info is Info for a name that may be forbidden.
func (d *Dir) info(name string) (Info, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(d.fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return Info{}, d.roots.explain(d.below(name), err)
	}
	return Info{Mode: fileMode(&stat), Size: stat.Size, Modified: time.Unix(stat.Mtim.Unix())}, nil
}

// Target returns the target of a symbolic link, which may be outside the folders.
func (d *Dir) Target(name string) (string, error) {
	if d.forbids(name) {
		return "", d.roots.forbiddenPath(d.below(name))
	}
	buf := make([]byte, maxName+1)
	n, err := unix.Readlinkat(d.fd, name, buf)
	if err != nil {
		return "", d.roots.explain(d.below(name), err)
	}
	return string(buf[:n]), nil
}

// Read appends the entries of the directory to entries, unordered and without forbidden files.
// With an error, it returns the entries read so far. A directory with too many entries is an
// error.
func (d *Dir) Read(entries []DirEntry) ([]DirEntry, error) {
	first := len(entries)
	entries, err := d.readAll(entries)
	if len(d.roots.forbidden) == 0 {
		return entries, err
	}
	there := slices.DeleteFunc(entries[first:], func(e DirEntry) bool { return d.forbids(e.Name) })
	return entries[:first+len(there)], err
}

// readAll is like Read, but includes forbidden files.
func (d *Dir) readAll(entries []DirEntry) ([]DirEntry, error) {
	first := len(entries)
	entries, err := d.read(entries)
	for i := first; i < len(entries); i++ {
		if entries[i].Type != fs.ModeIrregular {
			continue // the file system reports the kind with the name
		}
		info, err := d.info(entries[i].Name)
		if err != nil {
			info.Mode = fs.ModeIrregular // it no longer exists
		}
		entries[i].Type = info.Mode.Type()
	}
	switch {
	case errors.Is(err, errTooMany):
		return entries, tool.Errorf(tool.ResourceExhausted, "Directory has more than %d entries, the rest is left out: %s", maxEntries, tool.VisibleName(d.Path()))
	case err != nil:
		return entries, d.roots.explainDirectory(d.Path(), err)
	default:
		return entries, nil
	}
}

var errTooMany = errors.New("too many entries")

// Close closes the directory. Files opened in it stay open. Calling Close again does
// nothing.
func (d *Dir) Close() error { return closeOnce(&d.fd) }

// closeOnce closes a descriptor and forgets it, since its number is soon reused.
func closeOnce(fd *int) error {
	open := *fd
	if open < 0 {
		return nil
	}
	*fd = -1
	return unix.Close(open)
}

// retry calls open again while a signal interrupts it.
func retry(open func() (int, error)) (int, error) {
	for {
		fd, err := open()
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// fileMode converts the system's mode to that of package fs.
func fileMode(stat *unix.Stat_t) fs.FileMode {
	mode := uint32(stat.Mode) //nolint:unconvert // other systems have fewer bits
	m := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	default:
		m |= fs.ModeDevice
	}
	return m
}
