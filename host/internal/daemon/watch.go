package daemon

import (
	"sync"

	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// watcher tells whoever watches the host when other tools are offered.
type watcher struct {
	poked   chan struct{} // holds one
	stopped chan struct{}
	running sync.WaitGroup
}

// watch begins to watch a catalog. It calls changed when other tools are offered, and look
// then and after each poke. The caller must stop it.
func watch(c *catalog.Catalog, events *event.Bus, changed, look func()) *watcher {
	w := &watcher{poked: make(chan struct{}, 1), stopped: make(chan struct{})}
	changes, unsubscribe := c.Changed()
	w.running.Go(func() { // ends with stop
		defer unsubscribe()
		for {
			select {
			case <-changes:
				events.Publish("", event.CatalogChanged{Tools: len(c.Entries())})
				changed()
				look()
			case <-w.poked:
				look()
			case <-w.stopped:
				look() // what was poked and not looked at
				return
			}
		}
	})
	return w
}

// poke has the watcher look once more. It does not wait.
func (w *watcher) poke() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

// stop returns when nothing is told any more.
func (w *watcher) stop() {
	close(w.stopped)
	w.running.Wait()
}
