package tool

import "slices"

// Role is the meaning of an argument, so that a rule for paths, for example,
// applies to the tools of all plugins. It is the value of the schema keyword
// [KeywordRole].
type Role string

// The closed list of roles.
const (
	// RolePath is a file or directory, relative to the workspace or absolute.
	RolePath Role = "path"
	// RoleCommand is a shell command line.
	RoleCommand Role = "command"
	// RoleArgv is a command as a list of words: a program and its arguments. No
	// shell reads them.
	RoleArgv Role = "argv"
	// RoleScript is input of a shell that keeps its state between calls.
	RoleScript Role = "script"
	// RoleURL is an address that the tool contacts.
	RoleURL Role = "url"
	// RolePatch is a patch that package sdk/patch can read. The files that it
	// names count as values of [RolePath].
	RolePatch Role = "patch"
	// RoleRepository is a git repository, or a file or directory in it. It counts
	// as a value of [RolePath] too. Calls that change something in one repository
	// run one after another.
	RoleRepository Role = "repository"
	// RoleSecret is a value that must not be shown or recorded.
	RoleSecret Role = "secret"
)

// Roles lists every role.
func Roles() []Role {
	return []Role{RolePath, RoleCommand, RoleScript, RoleURL, RolePatch, RoleSecret, RoleArgv, RoleRepository}
}

// Valid reports whether r is in the closed list.
func (r Role) Valid() bool { return slices.Contains(Roles(), r) }

// Keywords of this contract in the input schema of a tool. The host removes them
// before a client sees the schema.
const (
	// KeywordRole names the [Role] of a property.
	KeywordRole = "x-role"
	// KeywordAliases lists other names of a property.
	KeywordAliases = "x-aliases"
	// KeywordRaw, if true, marks the one property that a caller may give as a
	// bare string instead of an object of arguments.
	KeywordRaw = "x-raw"
)
