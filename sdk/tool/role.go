package tool

import "slices"

// Role says what an argument means, so that a rule about, say, paths covers
// every plugin's tools. It is the value of the schema keyword [KeywordRole].
type Role string

// The closed list of roles.
const (
	// RolePath is a file or directory, relative to the workspace or absolute.
	RolePath Role = "path"
	// RoleCommand is a shell command line.
	RoleCommand Role = "command"
	// RoleArgv is a list of words that are one command: a program and its
	// arguments, which no shell reads.
	RoleArgv Role = "argv"
	// RoleScript is input for a shell that keeps state between calls.
	RoleScript Role = "script"
	// RoleURL is an address that the tool will contact.
	RoleURL Role = "url"
	// RolePatch is a patch, as package sdk/patch reads it: the files that it
	// names count as values of [RolePath].
	RolePatch Role = "patch"
	// RoleSecret is a value that must not be shown or recorded.
	RoleSecret Role = "secret"
)

// Roles lists every role.
func Roles() []Role {
	return []Role{RolePath, RoleCommand, RoleScript, RoleURL, RolePatch, RoleSecret, RoleArgv}
}

// Valid reports whether r is in the closed list.
func (r Role) Valid() bool { return slices.Contains(Roles(), r) }

// Keywords of ours in a tool's input schema. The host strips them before a
// client sees the schema.
const (
	// KeywordRole names the [Role] of a property.
	KeywordRole = "x-role"
	// KeywordAliases lists other names of a property.
	KeywordAliases = "x-aliases"
	// KeywordRaw, if true, marks the one property that takes a bare string
	// given as the whole arguments.
	KeywordRaw = "x-raw"
)
