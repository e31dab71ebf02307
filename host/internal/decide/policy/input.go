package policy

import (
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Input is the call to decide.
type Input struct {
	// Plugin and Tool name the tool, never by an alias.
	Plugin, Tool string
	// Tier is the tier of this call.
	Tier tool.Tier
	// Arguments are the decoded arguments of the call, with numbers as [encoding/json.Number]. They
	// must not be changed.
	Arguments map[string]any
	// Caller is the caller.
	Caller Caller
	// Asks reports that the tool's author wants a person to be asked.
	Asks bool
	// Paths are the paths in the arguments: as written, and with symbolic links resolved.
	Paths []Path
	// Folders are the workspace's folders, absolute and clean: as configured, the first one first,
	// and with symbolic links resolved.
	Folders []string
	// Commands are the arguments that are shell commands.
	Commands []Command
	// Linked are the words of the commands that lead elsewhere through symbolic links. An entry
	// without an absolute path means that some were not followed.
	Linked []Path
	// URLs are the addresses in the arguments.
	URLs []string
	// Grants are the ids of the grants that together cover the call, or the [Decision.Unanswered]
	// commands in it.
	Grants []string
	// Shared caches data of conditions for later conditions, such as arguments in another form. It
	// is nil before the first condition.
	Shared any
}

// file is a word of a command that may name a file.
type file struct {
	Path

	reads bool // the command is known only to read it
}

// files returns the files that the commands may name. Words are relative to the workspace, to a
// path of the call, which may be the commands' directory, and to directories that a line changes
// to.
func (in *Input) files() []file {
	var all []file
	for _, c := range in.Commands {
		bases, _ := in.Places(c.Line)
		add := func(name string, reads bool) {
			if filepath.IsAbs(name) {
				all = append(all, file{Path{name, filepath.Clean(name)}, reads})
				return
			}
			for _, base := range bases {
				all = append(all, file{Path{name, filepath.Join(base, name)}, reads})
			}
		}
		for _, s := range c.Line.Segments {
			for _, name := range s.Files {
				add(name, s.Risk == command.Low)
			}
		}
		for _, name := range c.Line.Files {
			add(name, false)
		}
	}
	return all
}

// maxBases limits the directories to which the words of a line may be relative.
const maxBases = 32

// Places returns the directories in which the commands of a line may run. all is false if there are
// more.
func (in *Input) Places(line *command.Line) (bases []string, all bool) {
	all = true
	add := func(base string) {
		switch {
		case slices.Contains(bases, base):
		case len(bases) < maxBases:
			bases = append(bases, base)
		default:
			all = false
		}
	}
	if len(in.Folders) > 0 {
		add(in.Folders[0])
	}
	for _, named := range in.Paths {
		add(named.Absolute)
	}
	for _, next := range line.Directories {
		if filepath.IsAbs(next) {
			add(filepath.Clean(next))
			continue
		}
		for _, base := range slices.Clone(bases) {
			add(filepath.Join(base, next))
		}
	}
	if len(bases) == 0 {
		add(string(filepath.Separator))
	}
	return bases, all
}

// inside reports whether a path is in one of the workspace's folders.
func (in *Input) inside(name string) bool {
	return slices.ContainsFunc(in.Folders, func(folder string) bool { return Within(name, folder) })
}

// Caller identifies the caller.
type Caller struct {
	User    string
	Client  string
	Session string
	Roles   []string
	Groups  []string
}

// Command is an argument that is a shell command.
type Command struct {
	// Line is the command as it was read; see [Rules.Reading].
	Line *command.Line
	// Script reports that it is input for a shell that keeps state: its effect depends on earlier
	// input.
	Script bool
	// Text reports that a shell would read it as text. No shell reads a command that is executed by
	// its tree, part by part, or that is a program with arguments.
	Text bool
}

// Path is a path in an argument.
type Path struct {
	// Name is the path as written.
	Name string
	// Absolute is the absolute, clean path.
	Absolute string
}
