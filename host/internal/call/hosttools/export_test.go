package hosttools

// Part and Selected are part and selected, for tests.
var (
	Part     = part
	Selected = selected
)

// Waiting returns how many calls of call_wait a user has.
func (t *Tools) Waiting(user string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waiting[user]
}
