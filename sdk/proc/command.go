package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk/proc/internal/reaper"
	"github.com/toolhost/toolhost/sdk/tool"
)

// DefaultMaxOutput is what is kept of each output of a command that says nothing
// else.
const DefaultMaxOutput = tool.MiB

// MaxFiles is how many files a command can be given beside its standard input
// and outputs.
const MaxFiles = reaper.MaxFiles

// Command is what to run. Path alone is enough.
type Command struct {
	// Path is the program: an absolute path, or a name without a slash, which is
	// looked up in SearchPath.
	Path string
	// SearchPath lists directories as PATH does; "" means the PATH of Env.
	SearchPath string
	// Args are the arguments after the program's name, as the program gets them.
	Args []string
	// Env is the whole environment, entries like NAME=value; nil means
	// [DefaultEnv], and an empty list none. Nothing is inherited.
	Env []string
	// Dir is the working directory, an absolute path; "" means "/".
	Dir string

	// Stdin is what the command reads from its standard input, which then ends.
	Stdin []byte
	// OpenStdin keeps standard input open after that, for [Process.Stdin].
	OpenStdin bool

	// MaxOutput is how much is kept of each output, in the [Result]; 0 means
	// [DefaultMaxOutput], and a negative number that nothing is. The command can
	// write more: its middle is left out.
	MaxOutput tool.ByteSize
	// Output gets what the command writes, as it comes; nil means that nobody
	// does. It is called by one goroutine at a time, and data is its own only
	// until it returns. The command waits for it once the pipe is full, and so does
	// the end of the command: it must not wait for that.
	Output func(s Stream, data []byte)
	// Merge gives the command one pipe for both outputs, so that what it writes
	// keeps its order. All of it is standard output then.
	Merge bool

	// Files are further open files of the command, which finds them as descriptors
	// 3, 4 and so on: [MaxFiles] at most. They stay the caller's, who may close
	// them once the command is started.
	Files []*os.File

	// Terminal is the command's side of a pseudo-terminal: its standard input,
	// output and error, and its controlling terminal. The caller reads and writes
	// the other side, and closes both. There is no Stdin, OpenStdin or Output then,
	// and nothing is kept of what is written.
	Terminal *os.File

	// Limits bound what each process of the command may use.
	Limits Limits
	// Rules say which files the command, and what it starts, may use; nil means
	// those that the plugin may.
	Rules *Rules
	// Grace is the time between SIGTERM, to the command's process group, and
	// SIGKILL to everything, when ctx ends; 0 means SIGKILL at once. What the
	// command leaves when SIGTERM has ended it has the rest of the time.
	Grace time.Duration
}

// Rules are the files that a command may use, on top of what the plugin may
// (Landlock). They are absolute paths; a directory stands for everything below
// it, and one that does not exist for nothing. All else can be looked at (stat)
// and no more. The command cannot gain privileges, by set-user-ID programs say,
// nor signal a process that is not its own (from Linux 6.12 on).
//
// A program needs its dynamic loader in Execute and its libraries in Read, and
// /dev/null in Devices if it uses that.
type Rules struct {
	// Read are files that can be read, and directories that can be listed.
	Read []string
	// Execute can be read and executed. A script needs its interpreter, too.
	Execute []string
	// Write can be read and changed, and what is in them made, removed and
	// renamed. Nothing there can be executed unless Execute has it too.
	Write []string
	// Devices can be read, written and controlled.
	Devices []string
	// Optional starts the command without rules if the kernel has none;
	// [Result.Restricted] tells. Otherwise that is an error.
	Optional bool
}

// DefaultEnv is the environment of a command that is given none: PATH with the
// usual directories, and LANG.
func DefaultEnv() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
}

// checked returns the command with its defaults, or what is wrong with it.
func (c Command) checked() (Command, error) {
	if c.Env == nil {
		c.Env = DefaultEnv()
	}
	if c.Dir == "" {
		c.Dir = "/"
	}
	if c.MaxOutput == 0 {
		c.MaxOutput = DefaultMaxOutput
	}
	if c.Grace < 0 {
		return c, invalid("the grace period %v is negative", c.Grace)
	}
	if c.Terminal != nil && (len(c.Stdin) > 0 || c.OpenStdin || c.Output != nil) {
		return c, invalid("a command with a terminal is given input or an output besides")
	}
	if len(c.Files) > MaxFiles || slices.Contains(c.Files, nil) {
		return c, invalid("a command is given %d files, of which none may be nil; expected at most %d", len(c.Files), MaxFiles)
	}
	if err := c.checkText(); err != nil {
		return c, err
	}
	if !filepath.IsAbs(c.Dir) {
		return c, invalid("the working directory %q is not an absolute path", c.Dir)
	}
	if err := c.Limits.check(); err != nil {
		return c, err
	}
	path, err := c.lookUp()
	c.Path = path
	return c, err
}

// checkText refuses what execve(2) cannot take: it ends strings at a NUL byte.
func (c *Command) checkText() error {
	if c.Path == "" {
		return invalid("no program is given")
	}
	if hasNUL(c.Path) || hasNUL(c.Dir) {
		return invalid("a path contains a NUL byte")
	}
	for i, arg := range c.Args {
		if hasNUL(arg) {
			return invalid("argument %d contains a NUL byte", i+1)
		}
	}
	for _, entry := range c.Env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || hasNUL(name) {
			return invalid("environment entry %q is not NAME=value", name)
		}
		if hasNUL(value) {
			return invalid("environment variable %s contains a NUL byte", name)
		}
	}
	if c.Rules == nil {
		return nil
	}
	for _, list := range [][]string{c.Rules.Read, c.Rules.Execute, c.Rules.Write, c.Rules.Devices} {
		for _, path := range list {
			if !filepath.IsAbs(path) || hasNUL(path) {
				return invalid("the rules name %q, which is not an absolute path", path)
			}
		}
	}
	return nil
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

func invalid(format string, args ...any) *tool.Error {
	return tool.Errorf(tool.InvalidArgument, "%s", fmt.Sprintf(format, args...))
}
