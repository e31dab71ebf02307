package policy

import (
	"path/filepath"

	"github.com/toolhost/toolhost/host/internal/command"
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
	// Paths are the paths that the arguments name, without the folders that
	// callers work in: those are around everything.
	Paths []Path
	// Folders are those that callers work in, absolute and clean.
	Folders []string
	// Commands are the arguments that are shell commands.
	Commands []Command
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

// files are what the commands may name, as written.
func (in *Input) files() []file {
	var all []file
	for _, c := range in.Commands {
		for _, s := range c.Line.Segments {
			for _, name := range s.Files {
				absolute := filepath.Clean(name)
				if !filepath.IsAbs(name) && len(in.Folders) > 0 {
					absolute = filepath.Join(in.Folders[0], name)
				}
				all = append(all, file{Path{Name: name, Absolute: absolute}, s.Risk == command.Low})
			}
		}
	}
	return all
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
}

// Path is a path that an argument names.
type Path struct {
	// Name is as the argument has it.
	Name string
	// Absolute is where it leads, clean.
	Absolute string
}
