package proc

// DropReaper ends the reaper that waits for the next command, and returns when it has ended.
// The next command starts another.
func DropReaper() {
	spare.mu.Lock()
	for spare.starting != nil {
		started := spare.starting
		spare.mu.Unlock()
		<-started
		spare.mu.Lock()
	}
	r := spare.reaper
	spare.reaper = nil
	spare.mu.Unlock()
	if r != nil {
		r.kill()
		<-r.gone
		r.close()
	}
}
