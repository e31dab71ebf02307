package auth

// Process is a process on this machine. A later process with the same number is a different
// [Process].
type Process struct {
	PID int
	// Started is the start time, in units of the system.
	Started string
}

// Peer returns the process at the other end of a connection. The error is [ErrNeverTold] on a
// system that never reports it.
type Peer func() (Process, error)
