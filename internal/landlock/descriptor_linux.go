package landlock

// FD returns the ruleset's descriptor, for a process that calls landlock_restrict_self(2)
// itself: a process that was just forked cannot call Restrict. The descriptor is closed on exec.
func (s *Ruleset) FD() int { return s.fd }
