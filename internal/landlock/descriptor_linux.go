package landlock

// FD returns the ruleset's descriptor, for a process that applies it by
// landlock_restrict_self(2) itself: one that was just forked cannot call
// Restrict. It is closed when a program is executed.
func (s *Ruleset) FD() int { return s.fd }
