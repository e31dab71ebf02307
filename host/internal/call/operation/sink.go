package operation

import (
	"slices"
	"sync"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Progress passes a report of the tool on to the sink and the watchers.
func (o *Operation) Progress(p tool.Progress) { o.sink.progress(p) }

// Chunk passes a piece of the tool's output on to the sink.
func (o *Operation) Chunk(c tool.Chunk) { o.sink.chunk(c) }

// sink passes reports on to a sink that can be replaced.
type sink struct {
	mu       sync.Mutex // guards everything below, and keeps reports one at a time
	to       tool.Sink
	watchers []*watcher
}

// watcher gets the progress beside the sink.
type watcher struct{ progress func(tool.Progress) }

func (s *sink) watch(progress func(tool.Progress)) (stop func()) {
	w := &watcher{progress}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(s.watchers, w)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watchers = slices.DeleteFunc(s.watchers, func(other *watcher) bool { return other == w })
	}
}

func (s *sink) set(to tool.Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
}

func (s *sink) get() tool.Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to
}

func (s *sink) progress(p tool.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to.Progress != nil {
		s.to.Progress(p)
	}
	for _, w := range s.watchers {
		w.progress(p)
	}
}

func (s *sink) chunk(c tool.Chunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to.Chunk != nil {
		s.to.Chunk(c)
	}
}
