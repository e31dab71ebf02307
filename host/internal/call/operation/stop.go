package operation

import "context"

// SetPlugin sets the plugin of the call's tool, by which [Registry.Stop] finds the operation.
func (o *Operation) SetPlugin(plugin string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.plugin = plugin
}

// Stop cancels the operations of the calls that an admin has stopped, with cause as the error of
// their calls, and returns their number. covers says which, by the user and the plugin; operations
// whose plugin is not known yet are left. wait blocks until they have ended, or until ctx ends, and
// returns how many have not.
func (r *Registry) Stop(covers func(user, plugin string) bool, cause error) (stopped int, wait func(ctx context.Context) (left int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*Operation
	for _, o := range r.byID {
		o.mu.Lock()
		if !o.isDone() && o.plugin != "" && covers(o.call.Caller.User, o.plugin) {
			if o.stop(cause); !o.begun || !o.changes {
				o.retry = false // the same call made again runs
			}
			all = append(all, o)
		}
		o.mu.Unlock()
	}
	return len(all), func(ctx context.Context) (left int) {
		for _, o := range all {
			select {
			case <-o.done:
			case <-ctx.Done():
			}
			if !o.isDone() {
				left++
			}
		}
		return left
	}
}
