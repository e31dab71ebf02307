package hosttools

var (
	Part     = part
	Selected = selected
)

// Waiting returns the number of calls of call_wait that a user has under way.
func (t *Tools) Waiting(user string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting[user]
}
