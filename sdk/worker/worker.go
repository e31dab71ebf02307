// Package worker runs functions of a plugin in processes of their own, with limits on memory
// and processor time. It is for documents that could make a library run forever, use all
// memory or crash, with everything else that the plugin does.
//
// A process is the plugin's own program, executed anew. The program must call [Serve] first.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// patience is the time limit of a process. Its processor time is limited by [Job.Time],
	// so this is for busy machines.
	patience = time.Minute
	// heap is the soft memory limit of a process, below the hard limit [Memory].
	heap = 160 * tool.MiB
)

// ErrLimit is the error of a function that took too much time or memory, or crashed.
var ErrLimit = errors.New("the process took too much time or memory, or crashed")

// Job is one call of a function in a process of its own.
type Job struct {
	// Function is the name that [Serve] knows.
	Function string
	// Request are the arguments of the function, which become JSON.
	Request any
	// Body and File are further input; both are optional. The caller keeps the file.
	Body []byte
	File *os.File
	// Time is the limit of processor time, in whole seconds. The limit of memory is [Memory].
	Time time.Duration
	// MaxAnswer bounds the JSON of the answer.
	MaxAnswer tool.ByteSize
}

// head is the first line of a process's input. The body follows.
type head struct {
	Request any  `json:"request"`
	File    bool `json:"file,omitempty"`
}

// reply is the output of a process.
type reply struct {
	Answer any         `json:"answer"`
	Error  *tool.Error `json:"error,omitempty"`
}

// Run calls the function and stores its answer in answer, a pointer. If the function returned an
// error, Run returns it as a [*tool.Error], and stores the answer if there was one, too. If the
// function exceeded its limits, the error is [ErrLimit].
func Run(ctx context.Context, j Job, answer any) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	first, err := json.Marshal(head{Request: j.Request, File: j.File != nil})
	if err != nil {
		return err
	}
	command := proc.Command{
		Path:      self(),
		Args:      []string{j.Function},
		Env:       []string{fmt.Sprintf("GOMEMLIMIT=%d", heap), "GOMAXPROCS=1"},
		Stdin:     append(append(first, '\n'), j.Body...),
		MaxOutput: j.MaxAnswer,
		Limits:    proc.Limits{CPUTime: j.Time, Memory: Memory},
	}
	if j.File != nil {
		command.Files = []*os.File{j.File}
	}
	result, err := proc.Run(bounded, command)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && bounded.Err() == nil:
		return tool.Errorf(tool.Unavailable, "cannot start a process to read the document").
			WithHint("the administrator adds read = [\"/proc\"] to the filesystem block of the plugin's sandbox, or sets the isolation isolated").WithCause(err)
	case err != nil || result.ExitCode != 0:
		return fmt.Errorf("%w: %s", ErrLimit, result.Stderr.String())
	}
	got := reply{Answer: answer}
	if err := json.Unmarshal([]byte(result.Stdout.String()), &got); err != nil {
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	if got.Error != nil {
		return got.Error
	}
	return nil
}

func self() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe" // works wherever the sandbox mounts the program
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
