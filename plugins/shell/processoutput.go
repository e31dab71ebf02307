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
	Job    string `json:"job" jsonschema:"the job's id"`
	Cursor int64  `json:"cursor,omitempty" jsonschema:"where to read on: next_cursor of the result before; 0 is the beginning, a negative number counts from the end"`
	Wait   int    `json:"wait,omitempty" jsonschema:"how many seconds to wait for more output or the job's end" min:"0" max:"300"`
}

// maxWait is the most that the argument wait can be.
const maxWait = 5 * time.Minute

// output returns what a job has written.
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

// show is the result that gives a part of the job's log: most bytes of text.
func (j *job) show(read page, asked int64, most int) tool.Result {
	data := read.data
	if read.from+int64(len(data)) < read.total || !read.over {
		data = untilWhole(data) // the rest of the character comes with the next part
		if len(data) == 0 {
			data = read.data
		}
	}
	shown := strings.ToValidUTF8(string(data), "\uFFFD")
	for len(shown) > most { // what is no text becomes longer
		data = untilWhole(data[:len(data)*most/len(shown)])
		shown = strings.ToValidUTF8(string(data), "\uFFFD")
	}
	next := read.from + int64(len(data))
	facts := map[string]any{"next_cursor": next, "more": next < read.total, "running": !read.over, "state": j.stateAt(read.over)}
	var b strings.Builder
	if skipped := read.from - asked; asked >= 0 && skipped > 0 {
		facts["skipped"] = skipped
		fmt.Fprintf(&b, "[%s bytes before this are no longer kept]\n", thousands(skipped))
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

// stateAt is the state of a job whose log was over or not.
func (j *job) stateAt(over bool) string {
	if !over {
		return "running"
	}
	<-j.ended // just after its log
	return j.state()
}
