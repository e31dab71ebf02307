package grep

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
)

// found collects the results of a search on several processors: the first files in the
// order of their paths, as many as a result can show. So the result does not depend on
// how the work was divided, and memory is bounded.
type found struct {
	content     bool // lines count, else files
	most, space int  // how many of them the result shows, and bytes

	// total is how many results there are; more than countTo are not counted.
	total                     atomic.Int64
	countTo                   int
	files, binary, unreadable atomic.Int64
	gaps                      unsearched

	// end is the path of the last file that can be shown, once it is known.
	end atomic.Pointer[string]

	mu   sync.Mutex // guards what follows
	kept []fileHits
	// results and size are the totals of kept.
	results, size int
	// due is how many files are kept before the next look for an end.
	due int
}

// fileHits holds the matches in one file.
type fileHits struct {
	path, rel string
	hits      *hits
}

// measure returns how many results and bytes a file adds, at least.
func (f *found) measure(h fileHits) (results, size int) {
	if f.content {
		return h.hits.matches, len(h.path) + h.hits.size()
	}
	return 1, len(h.path)
}

// isBeyond reports whether a path follows all that can be shown.
func (f *found) isBeyond(e filetree.Entry) bool {
	end := f.end.Load()
	return end != nil && filetree.Compare(e.Rel(), *end) > 0
}

// isUncounted reports whether a path follows all that can be shown, and there are too many
// results to count.
func (f *found) isUncounted(e filetree.Entry) bool {
	return int(f.total.Load()) > f.countTo && f.isBeyond(e)
}

// count counts the results in a file.
func (f *found) count(h *hits) {
	n := h.total
	if !f.content {
		n = min(n, 1)
	}
	f.total.Add(int64(n))
}

// add adds a file in which something was found.
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

// cut drops what follows the first file that does not fit. That file is kept, to tell
// that there is more.
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

// into adds everything to a report at the end of the search.
func (f *found) into(r *report) {
	f.sort()
	for _, h := range f.kept {
		r.add(h)
		if r.full {
			f.gaps.until(h.rel)
			break
		}
	}
	r.total = int(f.total.Load())
	r.files, r.binary, r.unreadable = int(f.files.Load()), int(f.binary.Load()), int(f.unreadable.Load())
	r.secrets, r.leftOut, r.notes = f.gaps.count[secret], f.gaps.leftOut(), f.gaps.notes()
}
