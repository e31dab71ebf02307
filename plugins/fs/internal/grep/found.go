package grep

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
)

// found is what a search on several processors has found so far: the files that
// come first in the order of their paths, as many as a result can show. So the
// result is the same however the work was divided, and little is kept.
type found struct {
	content     bool // lines count, else files
	most, space int  // how many of them the result shows, and bytes

	files, binary, unreadable atomic.Int64
	gaps                      unsearched

	// end is the path of the last file that can be shown, once that is known.
	end atomic.Pointer[string]

	mu   sync.Mutex // guards what follows
	kept []fileHits
	// results and size are those of what is kept.
	results, size int
	// due is how many files are kept before it is worth to look for an end.
	due int
}

// fileHits is what was found in a file.
type fileHits struct {
	path, rel string
	hits      *hits
}

// measure is how many results a file adds, and bytes, at least.
func (f *found) measure(h fileHits) (results, size int) {
	if f.content {
		return h.hits.matches, len(h.path) + h.hits.size()
	}
	return 1, len(h.path)
}

// isBeyond reports whether a path comes after all that can be shown.
func (f *found) isBeyond(e filetree.Entry) bool {
	end := f.end.Load()
	return end != nil && filetree.Compare(e.Rel(), *end) > 0
}

// add adds a file, if anything was found in it.
func (f *found) add(h fileHits) {
	if h.hits.matches == 0 && !h.hits.more {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, h)
	results, size := f.measure(h)
	f.results += results
	f.size += size
	if (f.results > f.most || f.size > f.space) && len(f.kept) >= f.due {
		f.cut()
	}
}

// cut drops what comes after the first file that does not fit, which is kept to
// tell that there is more.
func (f *found) cut() {
	f.sort()
	f.results, f.size = 0, 0
	for i, h := range f.kept {
		results, size := f.measure(h)
		f.results += results
		f.size += size
		if f.results > f.most || f.size > f.space {
			clear(f.kept[i+1:])
			f.kept = f.kept[:i+1]
			f.end.Store(&h.rel)
			break
		}
	}
	f.due = len(f.kept) + len(f.kept)/4 + 1
}

func (f *found) sort() {
	slices.SortFunc(f.kept, func(a, b fileHits) int { return filetree.Compare(a.rel, b.rel) })
}

// into adds all to a report. It is called when the search has ended.
func (f *found) into(r *report) {
	f.sort()
	for _, h := range f.kept {
		r.add(h.path, h.hits)
		if r.full {
			f.gaps.until(h.rel)
			break
		}
	}
	r.files, r.binary, r.unreadable = int(f.files.Load()), int(f.binary.Load()), int(f.unreadable.Load())
	r.secrets, r.leftOut, r.notes = f.gaps.count[secret], f.gaps.leftOut(), f.gaps.notes()
}
