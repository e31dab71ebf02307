package daemon

import (
	"sync"

	"github.com/toolhost/toolhost/host/internal/catalog"
	"github.com/toolhost/toolhost/host/internal/event"
)

// watcher tells whoever watches the host when other tools are offered.
type watcher struct {
	stopped chan struct{}
	running sync.WaitGroup
}

// watch begins to watch a catalog, and calls changed when it has changed. The caller
// must stop it.
func watch(c *catalog.Catalog, events *event.Bus, changed func()) *watcher {
	w := &watcher{stopped: make(chan struct{})}
	changes, unsubscribe := c.Changed()
	w.running.Go(func() { // ends with stop
		defer unsubscribe()
		for {
			select {
			case <-changes:
				events.Publish("", event.CatalogChanged{Tools: len(c.Entries())})
				changed()
			case <-w.stopped:
				return
			}
		}
	})
	return w
}

// stop returns when nothing is told any more.
func (w *watcher) stop() {
	close(w.stopped)
	w.running.Wait()
}
