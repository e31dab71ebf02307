// Package landlock restricts a thread, and the program that it executes, to the
// files that are listed (landlock(7)). Everything else can be looked at (stat)
// and no more. What a rule allows here is still subject to owners and modes.
// Sockets are not its business: what Landlock refuses of TCP, MPTCP does all the
// same.
package landlock

// Rules are what is allowed. A directory stands for everything below it; a path
// that does not exist allows nothing.
type Rules struct {
	// Read are files that can be read, and directories that can be listed.
	Read []string
	// Execute can be read and executed.
	Execute []string
	// ExecuteFiles are like Execute, by descriptors that are open.
	ExecuteFiles []int
	// Write can be read and changed, and what is in them made, removed and
	// renamed. Nothing there can be executed unless Execute has it too.
	Write []string
	// Devices can be read, written and controlled (ioctl(2)).
	Devices []string
	// Scoped refuses signals to, and abstract sockets of, processes that are not
	// restricted by these rules, from ABI 6 on.
	Scoped bool
	// Resolved says that no symbolic links are to be followed, but for those of
	// /proc: a path that has one allows nothing.
	Resolved bool
}
