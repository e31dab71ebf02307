package roots

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxLinkedAge is how long the result of a search is used.
	maxLinkedAge = 5 * time.Second
	// clockTick is how far file times can lag behind the clock.
	clockTick = 20 * time.Millisecond
	// maxLinkedEntries is how many entries of one folder are examined.
	maxLinkedEntries = 500_000
	// maxLinkedDepth is how many levels are examined.
	maxLinkedDepth = 256
)

// hardLinks remembers for some seconds which secret and forbidden files in the folders have
// several names, so that they cannot be read under another name. The zero value is ready to
// use.
type hardLinks struct {
	mu      sync.Mutex        // guards folders; held during a search
	folders map[string]linked // by path
}

// linked holds the secret and forbidden files of a folder that have several names.
type linked struct {
	started time.Time
	files   map[identity]bool // value: the file is forbidden
	partly  bool              // the search did not examine all files
}

type identity struct{ dev, ino uint64 }

// unlinked refuses a file that was opened under a harmless name if another of its names is
// secret or forbidden. allowed means that the name is that of an allowed secret, which may
// have other names.
func (r *Roots) unlinked(name string, stat *unix.Stat_t, allowed bool) error {
	if stat.Nlink < 2 || (len(r.secrets) == 0 || allowed) && len(r.forbidden) == 0 {
		return nil
	}
	changed := time.Unix(stat.Ctim.Unix())
	for _, f := range r.folders {
		known := r.links.of(r, f, changed)
		isForbidden, ok := known.files[identityOf(stat)]
		if isForbidden {
			return r.forbiddenPath(name).WithHint("this file has another name, which the administrator has forbidden to all calls; continue without it")
		}
		if ok && !allowed {
			return r.secret(name).WithHint("this file has another name, and files of that name usually hold secrets; ask the user for the part that you need")
		}
		if known.partly {
			return tool.Errorf(tool.ResourceExhausted, "Failed to read file: it has %d names (hard links), and there are too many files to tell whether one of them holds secrets", stat.Nlink).
				WithHint("ask the user to copy the file")
		}
	}
	return nil
}

// unlinkedFile is like unlinked, for an open file.
func (r *Roots) unlinkedFile(name string, f *os.File, allowed bool) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return r.explain(name, err)
	}
	var stat unix.Stat_t
	if controlErr := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) }); controlErr != nil || err != nil {
		return r.explain(name, errors.Join(controlErr, err))
	}
	return r.unlinked(name, &stat, allowed)
}

func identityOf(stat *unix.Stat_t) identity { return identity{uint64(stat.Dev), stat.Ino} } //nolint:unconvert // it differs between systems

// of returns the linked files of a folder. It searches the folder again after some time, or if
// the file changed since the search: a new name changes the file.
func (l *hardLinks) of(r *Roots, f *folder, changed time.Time) linked {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.folders[f.real]
	if now := time.Now(); ok && now.Sub(known.started) < maxLinkedAge && changed.Before(known.started.Add(-clockTick)) {
		return known
	}
	search := linkSearch{linked: linked{started: time.Now(), files: map[identity]bool{}}}
	search.folder(r, f)
	if l.folders == nil {
		l.folders = map[string]linked{}
	}
	l.folders[f.real] = search.linked
	return search.linked
}

// linkSearch searches a folder.
type linkSearch struct {
	linked

	seen int
}

func (s *linkSearch) folder(r *Roots, f *folder) {
	d, err := r.openFolder(f)
	if err != nil {
		s.partly = true
		return
	}
	defer func() { _ = d.Close() }() // opened for reading only
	s.directory(d, 1)
}

// directory records the secret and forbidden files in a directory.
func (s *linkSearch) directory(d *Dir, depth int) {
	entries, err := d.readAll(nil)
	if s.seen += len(entries); s.seen > maxLinkedEntries || depth > maxLinkedDepth || errors.Is(err, errTooMany) {
		s.partly = true
	}
	for _, e := range entries {
		switch {
		case s.partly:
			return
		case e.Type.IsDir():
			inner, err := d.enter(e.Name)
			if err != nil {
				continue // removed, or unreadable with everything in it
			}
			s.directory(inner, depth+1)
			_ = inner.Close()
		case e.Type.IsRegular():
			isForbidden := d.forbids(e.Name)
			if !isForbidden && !d.secrets.Covers(e.Name) {
				continue
			}
			var stat unix.Stat_t
			if unix.Fstatat(d.fd, e.Name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil && stat.Nlink > 1 {
				s.files[identityOf(&stat)] = isForbidden || s.files[identityOf(&stat)]
			}
		}
	}
}
