package results

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// partial is the suffix of the name of a file that is being written.
const partial = ".part"

// errNoRoom reports that no part of a result could be kept.
var errNoRoom = errors.New("keep a result: other results of the user are being written and take all of the quota")

// untrusted is the suffix of the name of a file with content from outside.
const untrusted = ".untrusted"

// Writer writes a result. Only one goroutine may use it at a time.
type Writer struct {
	// Untrusted says that the result holds content from outside. Keep reads it.
	Untrusted bool
	// Quota bounds the results of the user if it is less than that of the [Dir]; 0 means that
	// of the Dir. Write reads it.
	Quota tool.ByteSize

	d              *Dir
	folder, handle string
	file           *os.File // nil when the writer has ended
	size, whole    int64    // bytes on disk, and bytes given to Write
	counted        int64    // bytes charged to the quota
	full           bool     // further bytes are only counted
	err            error
}

// Create starts a result of a user. The handle must be the id of a call. The caller
// must end the writer with [Writer.Keep] or [Writer.Discard].
func (d *Dir) Create(user, handle string) (*Writer, error) {
	if !handlePattern().MatchString(handle) {
		return nil, fmt.Errorf("keep a result: %q is not the id of a call", handle)
	}
	w := &Writer{d: d, folder: folder(user), handle: handle}
	if err := d.root.MkdirAll(w.folder, 0o700); err != nil {
		return nil, fmt.Errorf("keep a result: %w", err)
	}
	file, err := d.root.OpenFile(w.partial(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep a result: %w", err)
	}
	w.file = file
	return w, nil
}

func (w *Writer) partial() string { return path.Join(w.folder, w.handle+partial) }

// Write adds data to the result. If the result is longer than the quota, its head is
// kept and the rest is only counted. After an error the result cannot be kept.
func (w *Writer) Write(data []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.whole += int64(len(data))
	fitting := data
	if room := w.quota() - w.size; int64(len(fitting)) > room {
		fitting = fitting[:room]
	}
	if w.full || !w.reserve(w.size+int64(len(fitting))) {
		w.full = true
		return len(data), nil
	}
	w.full = len(fitting) < len(data)
	n, err := w.file.Write(fitting)
	w.size += int64(n)
	if err != nil {
		w.err = fmt.Errorf("keep a result: %w", err)
		return n, w.err
	}
	return len(data), nil
}

// quota bounds the results of the writer's user.
func (w *Writer) quota() int64 {
	if w.Quota == 0 {
		return w.d.quota
	}
	return min(w.d.quota, inBlocks(int64(w.Quota)))
}

// reserve charges a file of the given size to the quota, and drops the oldest results
// of the user to make room. It reports whether there is enough room.
func (w *Writer) reserve(size int64) bool {
	w.d.mu.Lock()
	s := w.d.shelf(w.folder)
	more := inBlocks(size) - w.counted
	dropped := s.fit(w.quota() - more)
	fits := s.bytes+more <= w.quota()
	if fits {
		s.bytes += more
		w.counted += more
	}
	w.d.mu.Unlock()
	w.d.remove(w.folder, dropped)
	return fits
}

// Keep ends the writer and makes the result readable. It returns the number of
// readable bytes, which is less than was written if the result is longer than the
// quota.
func (w *Writer) Keep() (int64, error) {
	if w.file == nil {
		return 0, errors.New("keep a result: it has ended already")
	}
	if w.err == nil && w.full && w.size == 0 {
		w.err = errNoRoom
	}
	k := &kept{
		handle: w.handle, file: w.handle + "." + strconv.FormatInt(w.whole, 10), size: w.size, whole: w.whole, untrusted: w.Untrusted, made: time.Now(),
	}
	if w.Untrusted {
		k.file += untrusted
	}
	final := path.Join(w.folder, k.file)
	if w.err == nil {
		// After a restart, the age of a result is that of its file.
		w.err = errors.Join(w.file.Close(), w.d.root.Chtimes(w.partial(), k.made, k.made), w.d.root.Rename(w.partial(), final))
	}
	if w.err != nil {
		w.Discard()
		return 0, w.err
	}
	w.file = nil
	w.d.add(w.folder, k, w.counted)
	return k.size, nil
}

// Discard ends the writer and removes the result. It does nothing after Keep.
func (w *Writer) Discard() {
	if w.file == nil {
		return
	}
	_ = w.file.Close() // the file is removed
	w.file = nil
	w.d.remove(w.folder, []string{w.handle + partial})
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.d.shelf(w.folder).bytes -= w.counted
}

// add adds a result that is on disk, and replaces one with the same handle. counted is
// what the writer charged to the quota.
func (d *Dir) add(folder string, k *kept, counted int64) {
	d.mu.Lock()
	s := d.shelf(folder)
	s.bytes += inBlocks(k.size) - counted
	var replaced []string
	if i := s.index(k.handle); i >= 0 {
		if old := s.kept[i]; old.file != k.file { // if equal, it is the same file
			replaced = []string{old.file}
		}
		s.bytes -= inBlocks(s.kept[i].size)
		s.kept = slices.Delete(s.kept, i, i+1)
	}
	s.kept = append(s.kept, k)
	d.mu.Unlock()
	d.remove(folder, replaced)
}

// fit drops the oldest results until the rest has at most the given bytes, or none is
// left, and returns the names of their files. Dir.mu is held.
func (s *shelf) fit(bytes int64) (dropped []string) {
	return s.dropWhile(func(*kept) bool { return s.bytes > bytes })
}

// dropWhile drops results, the oldest first, while should returns true, and returns the
// names of their files. Dir.mu is held.
func (s *shelf) dropWhile(should func(oldest *kept) bool) (dropped []string) {
	for _, k := range s.kept {
		if !should(k) {
			break
		}
		s.bytes -= inBlocks(k.size)
		dropped = append(dropped, k.file)
	}
	s.kept = slices.Delete(s.kept, 0, len(dropped))
	return dropped
}

// remove removes files of a user. The next start finds files that could not be removed.
func (d *Dir) remove(folder string, files []string) {
	for _, file := range files {
		if err := d.root.Remove(path.Join(folder, file)); err != nil {
			d.logger.Warn("a result whose time has passed stays on disk", "error", err)
		}
	}
}
