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
	// Tier is that of this call.
	Tier tool.Tier
	// Arguments are those of the call, as JSON decodes them, with numbers as
	// [encoding/json.Number]. Nothing changes them.
	Arguments map[string]any
	// Caller is who calls.
	Caller Caller
	// Asks says that the tool's author wants a person to be asked.
	Asks bool
	// Paths are the paths that the arguments name: as they are written, and as they
	// lead through symbolic links.
	Paths []Path
	// Folders are those that callers work in, absolute and clean: as they are
	// configured, the first one first, and as they lead through symbolic links.
	Folders []string
	// Commands are the arguments that are shell commands.
	Commands []Command
	// Linked are the words of the commands that lead elsewhere through symbolic links. One
	// without an absolute path says that there are more than were followed.
	Linked []Path
	// URLs are the addresses that the arguments name.
	URLs []string
	// Grants are the ids of the standing answers that cover the call together, those
	// of [Decision.Unanswered] in it.
	Grants []string
	// Shared is what conditions keep for those after them, e.g. arguments in another
	// form. It is theirs alone, and nil before the first one.
	Shared any
}

// file is a word of a command that may name a file.
type file struct {
	Path

	reads bool // the command is known to do no more than to read it
}

// files are what the commands may name, as written: relative to the workspace, to a path
// of the call, which may be where the commands run, and to where a line goes.
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

// maxBases bounds the directories to which the words of a line may be relative.
const maxBases = 32

// Places returns the directories in which the commands of a line may run, to which
// their words may be relative. It reports false if there are more than it returns.
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

// inside reports whether a path is one of the folders that callers work in, or below.
func (in *Input) inside(name string) bool {
	return slices.ContainsFunc(in.Folders, func(folder string) bool { return Within(name, folder) })
}

// Caller is who makes a call.
type Caller struct {
	User    string
	Client  string
	Session string
	Roles   []string
}

// Command is an argument that is a shell command.
type Command struct {
	// Line is how it was read; see [Rules.Reading].
	Line *command.Line
	// Script says that it is input for a shell that keeps state: what it runs
	// depends on what came before.
	Script bool
	// Text says that a shell would read it as text. One that is executed by its tree,
	// part by part, or that is a program with its arguments, no shell reads.
	Text bool
}

// Path is a path that an argument names.
type Path struct {
	// Name is as the argument has it.
	Name string
	// Absolute is where it leads, clean.
	Absolute string
}
