package proc

// DropReapers ends the reapers that wait for commands, and returns when they have ended. The next
// command starts another.
func DropReapers() {
	waitForSpare()
	for r := spareReaper(); r != nil; r = spareReaper() {
		r.kill()
		<-r.gone
		r.close()
	}
}

// SpareReaper returns the process id of the reaper that the next command gets, or 0.
func SpareReaper() int {
	waitForSpare()
	r := spareReaper()
	if r == nil || !keepReaper(r) {
		return 0
	}
	return r.process.Pid
}

// waitForSpare waits until no reaper is being started.
func waitForSpare() {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	for spare.starting != nil {
		started := spare.starting
		spare.mu.Unlock()
		<-started
		spare.mu.Lock()
	}
}
