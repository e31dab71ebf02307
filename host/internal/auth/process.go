package auth

// Process is a process of this machine. A later process with the same number is another
// [Process].
type Process struct {
	PID int
	// Started is when it was started, as the system counts.
	Started string
}

// Peer returns the process at the other end of a connection. The error is [ErrNeverTold]
// where the system never tells.
type Peer func() (Process, error)
