package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type outputArgs struct {
	Job    string `json:"job" jsonschema:"id of the job"`
	Cursor int64  `json:"cursor,omitempty" jsonschema:"start; negative from the end"`
	Wait   int    `json:"wait,omitempty" jsonschema:"seconds to wait" min:"0" max:"300"`
}

// maxWait is the most that the argument wait can be.
const maxWait = 5 * time.Minute

// output returns a part of a job's output.
func (s *shell) output(ctx context.Context, call *sdk.Call, in outputArgs) (tool.Result, error) {
	defer s.owners.begin(ownerOf(call))()
	j, err := s.owners.job(ownerOf(call), in.Job)
	if err != nil {
		return tool.Result{}, err
	}
	wait := time.Duration(in.Wait) * time.Second
	most := max(0, budget(call)-around)
	read := j.log.read(in.Cursor, most)
	if wait > 0 && len(read.data) == 0 && !read.over {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-read.changed:
		case <-timer.C:
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
		read = j.log.read(in.Cursor, most)
	}
	return j.show(read, in.Cursor, most), nil
}

// show returns the result for a part of the job's log, with at most most bytes of
// text.
func (j *job) show(read page, asked int64, most int) tool.Result {
	data := read.data
	if read.from+int64(len(data)) < read.total || !read.over {
		data = untilWhole(data) // the whole character is in the next part
		if len(data) == 0 {
			data = read.data
		}
	}
	shown := strings.ToValidUTF8(string(data), "\uFFFD")
	for len(shown) > most { // replacing invalid UTF-8 made it longer
		data = untilWhole(data[:len(data)*most/len(shown)])
		shown = strings.ToValidUTF8(string(data), "\uFFFD")
	}
	next := read.from + int64(len(data))
	facts := map[string]any{"next_cursor": next, "more": next < read.total, "running": !read.over, "state": j.stateAt(read.over)}
	var b strings.Builder
	if skipped := read.from - asked; asked >= 0 && skipped > 0 {
		facts["skipped"] = skipped
		fmt.Fprintf(&b, "[%s earlier bytes are no longer available]\n", thousands(skipped))
	}
	b.WriteString(shown)
	if read.over && j.err == nil {
		facts["exit_code"] = j.result.ExitCode
	}
	text := line(b.String())
	if next < read.total {
		text += fmt.Sprintf("[%s more bytes: cursor %d]\n", thousands(read.total-next), next)
	} else {
		text += fmt.Sprintf("[%s; next cursor %d]\n", facts["state"], next)
	}
	result := tool.TextResult(text)
	result.Metadata = facts
	return result
}

// stateAt returns the state of the job at the time its log was read.
func (j *job) stateAt(over bool) string {
	if !over {
		return "running"
	}
	<-j.ended // closed just after the log ends
	return j.state()
}
