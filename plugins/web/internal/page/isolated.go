package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// childArgument is the argument of a process that converts one document.
	childArgument = "read-document"
	// childPatience is the time limit of the process. Its processor time is limited by
	// childTime, so this is for busy machines. childHeap is its soft memory limit, below
	// the hard limit childMemory.
	childPatience = time.Minute
	childHeap     = 160 * tool.MiB
	// maxPart bounds the part of a document that the process returns, and maxConverted the
	// JSON of its result.
	maxPart      = 2 * tool.MiB
	maxConverted = 8 * tool.MiB
	// inProcess is the largest text in bytes that the calling process converts itself.
	inProcess = 256 << 10
)

// Isolated is like [Convert], with a limit on time and memory. A separate process converts
// the document and returns at most 2 MiB of it, unless the document is a short text, whose
// conversion needs time and memory in proportion to its length. The program must call
// [ServeChild] first.
//
// No HTML page is short enough to be converted in the calling process: for some pages the
// libraries need quadratic time and more, which is seconds for a page of 4 KB.
func Isolated(ctx context.Context, r Request) (Document, error) {
	if !Apart(r) {
		return Convert(r)
	}
	return convertApart(ctx, r)
}

// Apart reports whether [Isolated] starts a process for a request.
func Apart(r Request) bool {
	switch kind, _ := kindOf(r.Body, r.ContentType); kind {
	case KindPDF:
		return !r.Plain
	case KindHTML:
		return r.Format != Raw || len(r.Body) > inProcess
	case KindText:
		return len(r.Body) > inProcess
	case KindBinary:
	}
	return false
}

// childTime returns the processor time limit of the process: several times the time for a
// normal document of that size. For a PDF it is constant.
func childTime(r Request) time.Duration {
	if kind, _ := kindOf(r.Body, r.ContentType); kind == KindPDF {
		return 10 * time.Second
	}
	return time.Duration(2+len(r.Body)/(512<<10)) * time.Second
}

// answer is the output of the process.
type answer struct {
	Document Document    `json:"document"`
	Error    *tool.Error `json:"error,omitempty"`
}

func convertApart(ctx context.Context, r Request) (Document, error) {
	bounded, cancel := context.WithTimeout(ctx, childPatience)
	defer cancel()
	if r.Part.Bytes == 0 || r.Part.Bytes > int(maxPart) {
		r.Part.Bytes = int(maxPart)
	}
	if r.Links != nil {
		r.Links.Bytes = min(r.Links.Bytes, int(maxPart))
	}
	head, err := json.Marshal(r)
	if err != nil {
		return Document{}, err
	}
	result, err := proc.Run(bounded, proc.Command{
		Path:      self(),
		Args:      []string{childArgument},
		Env:       []string{fmt.Sprintf("GOMEMLIMIT=%d", childHeap), "GOMAXPROCS=1"},
		Stdin:     append(append(head, '\n'), r.Body...),
		MaxOutput: maxConverted,
		Limits:    proc.Limits{CPUTime: childTime(r), Memory: childMemory},
	})
	switch {
	case ctx.Err() != nil:
		return Document{}, ctx.Err()
	case err != nil && bounded.Err() == nil:
		return Document{}, tool.Errorf(tool.Unavailable, "cannot start a process to read the document").
			WithHint("the administrator adds read = [\"/proc\"] to the filesystem block of the plugin's sandbox, or sets the isolation isolated").WithCause(err)
	}
	var got answer
	if err != nil || result.ExitCode != 0 || json.Unmarshal([]byte(result.Stdout.String()), &got) != nil {
		return Document{}, tool.Errorf(tool.ResourceExhausted, "the document takes too much time or memory to read").
			WithHint("look for it in another format, or on another page").WithCause(errors.New(result.Stderr.String()))
	}
	if got.Error != nil {
		return got.Document, got.Error
	}
	return got.Document, nil
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

// ServeChild converts a document and exits, if [Isolated] started the process for that. If
// not, it returns. A program that uses [Isolated] must call it first.
func ServeChild() {
	if len(os.Args) != 2 || os.Args[1] != childArgument {
		return
	}
	debug.SetGCPercent(200)
	if err := serveChild(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveChild(in io.Reader, out io.Writer) error {
	all, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	head, body, _ := bytes.Cut(all, []byte("\n"))
	var r Request
	if err := json.Unmarshal(head, &r); err != nil {
		return err
	}
	r.Body = body
	var got answer
	if got.Document, err = Convert(r); err != nil {
		got.Error = tool.AsError(err)
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false) // escapes make the text up to six times as long
	return encoder.Encode(got)
}
