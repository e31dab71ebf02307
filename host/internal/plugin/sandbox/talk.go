package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// errNoReport means that the launcher ended before it said anything.
var errNoReport = errors.New("the launcher ended before it reported")

// talk is the host's side of the conversation with one launcher.
type talk struct{ order, report *os.File }

// run sends the order and waits until the program has been executed: then the
// launcher's end of the report closes by itself.
func (t *talk) run(order []byte) (*launch.Details, error) {
	// A launcher that refuses or dies before it has read all of the order says
	// more in its notice than the write's error does.
	_, writeErr := t.order.Write(order)
	closeAll(t.order)

	dec := json.NewDecoder(io.LimitReader(t.report, launch.MaxNotices))
	var first, second launch.Notice
	if err := dec.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errNoReport
		}
		return nil, fmt.Errorf("read the launcher's report: %w", err)
	}
	switch {
	case first.Failure != nil:
		return nil, first.Failure
	case first.Done == nil:
		return nil, errors.New("the launcher's report is empty")
	case writeErr != nil:
		return nil, fmt.Errorf("send orders: %w", writeErr)
	}
	err := dec.Decode(&second)
	switch {
	case errors.Is(err, io.EOF):
		return first.Done, nil
	case err != nil:
		return nil, fmt.Errorf("read the launcher's report: %w", err)
	case second.Failure != nil:
		return nil, second.Failure
	default:
		return nil, errors.New("the launcher reported twice")
	}
}

func (t *talk) close() {
	closeAll(t.order, t.report)
}

func bytesOf(in []string) []launch.Bytes {
	out := make([]launch.Bytes, len(in))
	for i, s := range in {
		out[i] = launch.Bytes(s)
	}
	return out
}
