package filetree

import (
	"context"
	"io/fs"
	"slices"
	"sync"
)

// chunk is how many files of a directory one worker takes at a time.
const chunk = 64

// Visit is called with each file, and with each directory that cannot be read completely
// and the error.
type Visit func(Entry, error)

// Each calls the visits with everything below the start except directories, in no order,
// each visit in its own goroutine. It returns when all have returned. The error is that
// the start cannot be read, or that ctx has ended.
func (t *Tree) Each(ctx context.Context, visits []Visit) error {
	q := &queue{}
	q.changed.L = &q.mu
	entries, err, rulesErr := t.start.list()
	if err != nil && len(entries) == 0 {
		return err
	}
	for _, err := range append(t.notes, err, rulesErr) {
		if err != nil {
			visits[0](Entry{Name: t.start.path, Type: fs.ModeDir}, err)
		}
	}
	t.start.hold()
	q.push(t.start, entries)
	var wg sync.WaitGroup
	for _, visit := range visits {
		wg.Go(func() { q.work(ctx, visit) })
	}
	wg.Wait()
	q.end()
	return ended(ctx)
}

// queue is the remaining work. The last job added is done first, so that few directories
// are begun and not finished.
type queue struct {
	mu      sync.Mutex // guards what follows
	changed sync.Cond
	jobs    []job
	working int
}

// job is a group of entries of one directory, which count together as one user of it: either
// files, or directories to enter, in reverse order.
type job struct {
	in          *directory
	files, dirs []Entry
}

// push adds the entries of a directory for its only user.
func (q *queue) push(in *directory, entries []Entry) {
	dirs := slices.Clone(entries)
	dirs = slices.DeleteFunc(dirs, func(e Entry) bool { return !e.IsDir() })
	files := slices.DeleteFunc(entries, Entry.IsDir)
	slices.Reverse(dirs)
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(dirs) > 0 {
		in.hold()
		q.jobs = append(q.jobs, job{in: in, dirs: dirs})
	}
	for len(files) > 0 {
		// The last first, so that the first are on top.
		rest := (len(files) - 1) / chunk * chunk
		in.hold()
		q.jobs = append(q.jobs, job{in: in, files: files[rest:]})
		files = files[:rest]
	}
	in.release()
	q.changed.Broadcast()
}

// next takes a job, and waits if another worker may still add one. It reports false when
// no work is left. The caller is a user of the job's directory, and calls done after it
// has pushed everything that it found.
func (q *queue) next() (job, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.jobs) == 0 {
		if q.working == 0 {
			q.changed.Broadcast()
			return job{}, false
		}
		q.changed.Wait()
	}
	q.working++
	last := len(q.jobs) - 1
	j := q.jobs[last]
	if n := len(j.dirs); n > 1 {
		q.jobs[last].dirs = j.dirs[:n-1]
		j.in.hold()
		j.dirs = j.dirs[n-1:]
		return j, true
	}
	q.jobs[last] = job{}
	q.jobs = q.jobs[:last]
	return j, true
}

func (q *queue) done() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.working--
	q.changed.Broadcast()
}

// work does jobs until none is left.
func (q *queue) work(ctx context.Context, visit Visit) {
	for {
		j, ok := q.next()
		if !ok {
			return
		}
		for _, e := range j.dirs {
			if ctx.Err() == nil {
				q.enter(e, visit)
			}
		}
		for _, e := range j.files {
			if ctx.Err() == nil {
				visit(e, nil)
			}
		}
		j.in.release()
		q.done()
	}
}

// enter adds the entries of a directory.
func (q *queue) enter(e Entry, visit Visit) {
	if skip := e.in.tree.opts.Skip; skip != nil && skip(e) {
		return
	}
	entered, err := e.entered()
	if err == nil && !entered {
		return
	}
	var d *directory
	if err == nil {
		d, err = e.enter()
	}
	if err != nil {
		visit(e, err)
		return
	}
	entries, err, rulesErr := d.list()
	for _, err := range []error{err, rulesErr} {
		if err != nil {
			visit(e, err)
		}
	}
	q.push(d, entries)
}

// end releases the jobs that were not done.
func (q *queue) end() {
	for _, j := range q.jobs {
		j.in.release()
	}
}
