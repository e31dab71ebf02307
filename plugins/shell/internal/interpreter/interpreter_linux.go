// Package interpreter executes a command from its syntax tree, in a process of its
// own. The plugin executes itself again under the limits of the command and passes
// the tree to that process. The process asks the plugin about each program, builtin
// and file right before executing or opening it. It executes exactly the words it
// asked about; no shell parses text. A refusal ends the process, and the plugin
// kills everything the process started.
package interpreter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// Argument is the argument that makes the plugin's program an interpreter.
	Argument = "interpret"
	// socketFD is the file descriptor of the socket to the plugin.
	socketFD = 3
	// maxStack bounds the depth of recursive functions.
	maxStack = 128 << 20
	// Refused is the exit code of an interpreter after a refusal.
	Refused = 126
)

// question asks about one part of the command. answer is the reply.
type question struct {
	ID        uint64         `json:"id"`
	Execution tool.Execution `json:"execution"`
}

type answer struct {
	ID      uint64 `json:"id"`
	Allowed bool   `json:"allowed"`
}

// Entered reports whether this process was started as an interpreter, with a socket
// to the plugin.
func Entered() bool {
	var stat unix.Stat_t
	return len(os.Args) == 2 && os.Args[1] == Argument &&
		unix.Fstat(socketFD, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFSOCK
}

// Main runs an interpreter and returns the exit code of the process.
func Main() int {
	unix.CloseOnExec(socketFD)
	debug.SetMaxStack(maxStack)
	// Programs that it executes can neither inspect it nor take its socket.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fail(err)
	}
	first, err := receive()
	if err != nil {
		return Refused // the plugin has ended, so there is no reader
	}
	if err := parkStderr(); err != nil {
		return fail(err)
	}
	if err := unix.SetNonblock(socketFD, true); err != nil { // waiting for an answer then needs no thread
		return fail(err)
	}
	socket := os.NewFile(socketFD, "plugin")
	decoder := json.NewDecoder(io.MultiReader(bytes.NewReader(first), socket))
	var o Program
	if err := decoder.Decode(&o); err != nil {
		return fail(err)
	}
	if err := o.setEnvironment(); err != nil {
		return fail(err)
	}
	asker := newAsker(socket)
	go asker.listen(decoder) // ends with the process
	code, err := run(&o, asker)
	if err != nil {
		return fail(err)
	}
	return code
}

// parkStderr moves standard error to another descriptor. The Go runtime writes the
// interpreter's stacks to descriptor 2 when it runs out of memory; they must not
// appear in the command's output.
func parkStderr() error {
	fd, err := unix.FcntlInt(uintptr(unix.Stderr), unix.F_DUPFD_CLOEXEC, socketFD+1)
	if err != nil {
		return err
	}
	os.Stderr = os.NewFile(uintptr(fd), "/dev/stderr")
	null, err := unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Dup3(null, unix.Stderr, 0); err != nil {
		return err
	}
	return unix.Close(null)
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "the command cannot be executed:", err)
	return Refused
}

// below reports whether a clean path is one of the others or below one of them.
func below(path string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool {
		return path == other || other == "/" || len(path) > len(other) && path[:len(other)] == other && path[len(other)] == '/'
	})
}
