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

// DefaultMaxOutput is the default of [Command.MaxOutput].
const DefaultMaxOutput = tool.MiB

// MaxFiles is the maximum number of [Command.Files].
const MaxFiles = reaper.MaxFiles

// Command is a command to run. Only Path is required.
type Command struct {
	// Path is the program: an absolute path, or a name without a slash that is looked up in
	// SearchPath.
	Path string
	// SearchPath lists directories like PATH; "" means the PATH in Env.
	SearchPath string
	// Args are the arguments after the program's name, passed unchanged.
	Args []string
	// Env is the complete environment, as entries NAME=value. Nil means [DefaultEnv], and an
	// empty list means none. The plugin's environment is not inherited.
	Env []string
	// Dir is the working directory, an absolute path; "" means "/".
	Dir string

	// Stdin is the content of the command's standard input.
	Stdin []byte
	// OpenStdin keeps standard input open after Stdin, for [Process.Stdin].
	OpenStdin bool

	// MaxOutput is how much of each output the [Result] keeps; 0 means [DefaultMaxOutput], and
	// a negative number means nothing. If the command writes more, the middle is left out.
	MaxOutput tool.ByteSize
	// Output receives the command's output as it arrives; it may be nil. Calls do not overlap,
	// and data is valid only until Output returns. If the pipe is full, the command waits for
	// Output. The end of the command waits for it, too, so Output must not wait for that end.
	Output func(s Stream, data []byte)
	// Merge gives the command one pipe for both outputs, so that their order is kept. All of
	// it counts as standard output.
	Merge bool

	// Files are further open files for the command, as descriptors 3, 4 and so on; at most
	// [MaxFiles]. The caller keeps them and may close them once the command has started.
	Files []*os.File

	// Terminal is the command's side of a pseudo-terminal. It becomes the command's standard
	// input, output and error, and its controlling terminal. The caller reads and writes the
	// other side, and closes both. Stdin, OpenStdin and Output do not apply then, and no
	// output is kept.
	Terminal *os.File

	// Limits bound the resources of each process of the command.
	Limits Limits
	// Rules say which files the command and its processes may use; nil means those that the
	// plugin may use.
	Rules *Rules
	// Grace is the time between SIGTERM and SIGKILL when ctx ends; 0 means SIGKILL at once.
	// SIGTERM goes to the command's process group, SIGKILL to all its processes. If SIGTERM
	// ends the command, the processes that it leaves have the rest of the time.
	Grace time.Duration
}

// Rules restrict the files that a command may use, in addition to the plugin's own
// restrictions (Landlock). They are absolute paths; a directory includes everything below it,
// and missing paths are ignored. All other files can only be examined (stat). The command
// cannot gain privileges, for example through set-user-ID programs. From Linux 6.12 on, it
// cannot signal processes other than its own.
//
// A program needs its dynamic loader in Execute, its libraries in Read, and /dev/null in
// Devices if it uses that.
type Rules struct {
	// Read lists files that can be read, and directories that can be listed.
	Read []string
	// Execute lists files that can be read and executed. A script needs its interpreter, too.
	Execute []string
	// Write lists files that can be read and changed, and directories in which files can be
	// created, removed and renamed. Nothing in them can be executed unless Execute lists it as
	// well.
	Write []string
	// Devices lists devices that can be read, written and controlled.
	Devices []string
	// Optional starts the command without rules if the kernel does not support them; see
	// [Result.Restricted]. Otherwise that is an error.
	Optional bool
}

// DefaultEnv is the default environment of a command: PATH with the usual directories, and
// LANG.
func DefaultEnv() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
}

// checked returns the command with its defaults, or the mistake in it.
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

// checkText refuses strings with NUL bytes, at which execve(2) would end them.
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
