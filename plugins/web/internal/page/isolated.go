package page

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
	"github.com/toolhost/toolhost/sdk/worker"
)

const (
	// function is the function of the process that converts one document.
	function = "read-document"
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

func convertApart(ctx context.Context, r Request) (Document, error) {
	if r.Part.Bytes == 0 || r.Part.Bytes > int(maxPart) {
		r.Part.Bytes = int(maxPart)
	}
	if r.Links != nil {
		r.Links.Bytes = min(r.Links.Bytes, int(maxPart))
	}
	var d Document
	err := worker.Run(ctx, worker.Job{Function: function, Request: r, Body: r.Body, Time: childTime(r), MaxAnswer: maxConverted}, &d)
	if errors.Is(err, worker.ErrLimit) {
		return Document{}, tool.Errorf(tool.ResourceExhausted, "the document takes too much time or memory to read").
			WithHint("look for it in another format, or on another page").WithCause(err)
	}
	return d, err
}

// ServeChild converts a document and exits, if [Isolated] started the process for that. If
// not, it returns. A program that uses [Isolated] must call it first.
func ServeChild() {
	worker.Serve(map[string]worker.Function{function: func(in worker.Input) (any, error) {
		var r Request
		if err := json.Unmarshal(in.Request, &r); err != nil {
			return nil, err
		}
		r.Body = in.Body
		return Convert(r)
	}})
}
