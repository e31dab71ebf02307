package pdf

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
	"github.com/toolhost/toolhost/sdk/worker"
)

const (
	// function is the function of the process that reads a PDF, and processTime its processor
	// time.
	function    = "read-pdf"
	processTime = 10 * time.Second
)

// fileRequest is the request to the process.
type fileRequest struct {
	Request
	Size int64 `json:"size"`
}

// ReadFile reads pages of a file in a process of its own, with limits on memory and time. The
// program must serve the function of [AddFunction].
func ReadFile(ctx context.Context, f *os.File, size int64, q Request) (Document, error) {
	var d Document
	err := worker.Run(ctx, worker.Job{
		Function: function, Request: fileRequest{q, size}, File: f, Time: processTime,
		MaxAnswer: 2 * tool.ByteSize(q.Bytes+maxPageText), // with the escapes of JSON
	}, &d)
	if errors.Is(err, worker.ErrLimit) {
		return Document{}, tool.Errorf(tool.ResourceExhausted, "the PDF takes too much time or memory to read").WithCause(err)
	}
	return d, err
}

// AddFunction adds the function that [ReadFile] calls to those of [worker.Serve].
func AddFunction(to map[string]worker.Function) {
	to[function] = func(in worker.Input) (any, error) {
		var r fileRequest
		if err := json.Unmarshal(in.Request, &r); err != nil {
			return nil, err
		}
		return Read(in.File, r.Size, r.Request)
	}
}
