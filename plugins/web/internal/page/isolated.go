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
	// childArgument is what a process is started with that reads one document.
	childArgument = "read-document"
	// childPatience is how long it may take for the time that it has, on a machine
	// that is busy. childHeap is from where on it collects garbage more often, before
	// it has taken childMemory.
	childPatience = time.Minute
	childHeap     = 160 * tool.MiB
	// maxPart bounds the part of a document that it answers with, and maxConverted
	// that as JSON.
	maxPart      = 2 * tool.MiB
	maxConverted = 8 * tool.MiB
	// inProcess is the size up to which a text is read in the plugin's own process.
	inProcess = 256 << 10
)

// Isolated does what [Convert] does, and bounds the time and memory that takes,
// whatever the document holds: in a process of its own, unless it is a short text,
// which takes the time and memory of its length. Of a document that is read so there
// are 2 MiB at most. The program must begin with [ServeChild].
//
// No page is short enough to be read here: what reads, selects and writes elements
// takes quadratic time and more for some, seconds for a page of 4 KB.
func Isolated(ctx context.Context, r Request) (Document, error) {
	if !Apart(r) {
		return Convert(r)
	}
	return convertApart(ctx, r)
}

// Apart reports whether [Isolated] starts a process for a document.
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

// childTime is how much processor time the process has: several times what an honest
// document of that size takes. Of a PDF the size says little.
func childTime(r Request) time.Duration {
	if kind, _ := kindOf(r.Body, r.ContentType); kind == KindPDF {
		return 10 * time.Second
	}
	return time.Duration(2+len(r.Body)/(512<<10)) * time.Second
}

// answer is what the process writes.
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
		return Document{}, tool.Errorf(tool.Unavailable, "no process can be started to read the document").
			WithHint("the administrator gives the plugin read = [\"/proc\"] in the filesystem block of its sandbox, or the isolation isolated").WithCause(err)
	}
	var got answer
	if err != nil || result.ExitCode != 0 || json.Unmarshal([]byte(result.Stdout.String()), &got) != nil {
		return Document{}, tool.Errorf(tool.ResourceExhausted, "the document takes too much time or memory to read").
			WithHint("look for it in another form, or on another page").WithCause(errors.New(result.Stderr.String()))
	}
	if got.Error != nil {
		return got.Document, got.Error
	}
	return got.Document, nil
}

func self() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe" // wherever the sandbox has put it
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// ServeChild reads a document and ends the process, if it was started for that.
// A program that uses [Isolated] calls it first.
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
	encoder.SetEscapeHTML(false) // it would be six times as long
	return encoder.Encode(got)
}
