package proc

// DropReaper ends the process that waits for the next command, and returns when
// it has ended; the next command starts another.
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
