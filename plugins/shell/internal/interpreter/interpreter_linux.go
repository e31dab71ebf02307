// Package interpreter executes a command by its syntax tree, in a process of its own:
// the plugin executes itself anew under the limits of the command, hands over the tree,
// and answers for each program, builtin and file whether it may be executed or opened,
// at that moment. What the process executes is what it has asked about, word by word; no
// shell reads a text. A part that is refused ends the process, and the plugin ends
// whatever it has started.
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
	// Argument is the one argument of the plugin's program as an interpreter.
	Argument = "interpret"
	// socketFD is the interpreter's descriptor to the plugin.
	socketFD = 3
	// maxStack bounds the depth of functions that call themselves.
	maxStack = 128 << 20
	// Refused is the exit code of an interpreter of which a part was refused.
	Refused = 126
)

// question is about one part, and answer is to it.
type question struct {
	ID        uint64         `json:"id"`
	Execution tool.Execution `json:"execution"`
}

type answer struct {
	ID      uint64 `json:"id"`
	Allowed bool   `json:"allowed"`
}

// Entered reports whether this process was started as an interpreter, with a socket to
// the plugin.
func Entered() bool {
	var stat unix.Stat_t
	return len(os.Args) == 2 && os.Args[1] == Argument &&
		unix.Fstat(socketFD, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFSOCK
}

// Main is the whole life of an interpreter. It returns the exit code of the process.
func Main() int {
	unix.CloseOnExec(socketFD)
	debug.SetMaxStack(maxStack)
	// What it executes cannot look into it, nor take its socket.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fail(err)
	}
	first, err := receive()
	if err != nil {
		return Refused // there is no plugin any more, nor anybody who reads
	}
	if err := parkStderr(); err != nil {
		return fail(err)
	}
	if err := unix.SetNonblock(socketFD, true); err != nil { // what waits for an answer costs no thread
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

// parkStderr gives standard error another descriptor: what the runtime writes to its own
// when memory ends, the stacks of the interpreter, is not for those who read the output.
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

// below reports whether a clean path is one of others, or lies below one.
func below(path string, others []string) bool {
	return slices.ContainsFunc(others, func(other string) bool {
		return path == other || other == "/" || len(path) > len(other) && path[:len(other)] == other && path[len(other)] == '/'
	})
}
