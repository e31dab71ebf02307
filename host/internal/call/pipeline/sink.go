package pipeline

import (
	"slices"
	"sync"

	"github.com/toolhost/toolhost/sdk/tool"
)

// toSink returns what a plugin reports to, for the life of the flight. What it
// reports goes to whoever holds the flight at the time.
func (f *Flight) toSink() tool.Sink {
	return tool.Sink{
		Progress: func(p tool.Progress) { f.sink.progress(p); f.p.publishProgress(f.call, p) },
		Chunk:    func(c tool.Chunk) { f.p.put(f.call, c.Data); f.sink.chunk(c) },
	}
}

// sink passes reports on to a sink that can be replaced.
type sink struct {
	mu       sync.Mutex // guards everything below, and keeps reports one at a time
	to       tool.Sink
	watchers []*watcher
}

// watcher hears of progress beside the sink.
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
