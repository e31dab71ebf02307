//go:build !linux

package hosts

// Of returns nothing: this system does not list locks.
func Of(string) []Host { return nil }

// Process returns false: nothing is known about other processes.
func Process(int) (Host, bool) { return Host{}, false }
