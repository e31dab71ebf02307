// Package landlock restricts a thread, and the program that it executes, to the listed files
// (landlock(7)). Everything else can only be examined (stat). Owners and modes still apply to
// allowed files. The package does not restrict sockets: Landlock's rules for TCP do not cover
// MPTCP.
package landlock

// Rules list the allowed files. A directory includes everything below it; a path that does not
// exist allows nothing.
type Rules struct {
	// Read are files that can be read, and directories that can be listed.
	Read []string
	// Execute can be read and executed.
	Execute []string
	// ExecuteFiles are like Execute, by descriptors that are open.
	ExecuteFiles []int
	// Write lists files that can be read and changed, and directories in which files can be
	// created, removed and renamed. Nothing in them can be executed unless Execute lists it as
	// well.
	Write []string
	// Devices can be read, written and controlled (ioctl(2)).
	Devices []string
	// Scoped refuses signals to, and abstract sockets of, processes that are not
	// restricted by these rules, from ABI 6 on.
	Scoped bool
	// Resolved means that symbolic links are not followed, except those in /proc: a path with a
	// link allows nothing.
	Resolved bool
}
