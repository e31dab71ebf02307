package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type outputArgs struct {
	Job    string `json:"job" jsonschema:"id of the job"`
	Cursor int64  `json:"cursor,omitempty" jsonschema:"start; negative from the end"`
	Wait   int    `json:"wait,omitempty" jsonschema:"seconds to wait" min:"0" max:"300"`
	Until  string `json:"until,omitempty" jsonschema:"wait for a line that matches this RE2 expression" max:"1000"`
}

const (
	// maxWait is the most that the argument wait can be.
	maxWait = 5 * time.Minute
	// untilWait is how long until waits without wait.
	untilWait = 30 * time.Second
)

// output returns a part of a job's output.
func (s *shell) output(ctx context.Context, call *sdk.Call, in outputArgs) (tool.Result, error) {
	defer s.owners.begin(ownerOf(call))()
	j, err := s.owners.job(ownerOf(call), in.Job)
	if err != nil {
		return tool.Result{}, err
	}
	wait := time.Duration(in.Wait) * time.Second
	most := max(0, budget(call)-around)
	if in.Until != "" {
		return j.outputUntil(ctx, in, most)
	}
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
	return j.show(read, in.Cursor, most, ""), nil
}

// outputUntil returns output when a line from the cursor on matches in.Until, when the job ends or
// when the time is up. If the line is farther from the cursor than a result is large, the result
// ends with it and begins later.
func (j *job) outputUntil(ctx context.Context, in outputArgs, most int) (tool.Result, error) {
	pattern, err := regexp.Compile("(?m)" + in.Until)
	if err != nil {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "until is not a regular expression of RE2: %v", err)
	}
	wait := cmp.Or(time.Duration(in.Wait)*time.Second, untilWait)
	timed, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	end, found := j.log.find(timed, in.Cursor, pattern)
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	from, said := in.Cursor, "until matches no line yet"
	if found {
		said = "until matches"
		if read := j.log.read(from, 0); end-read.from > int64(most) {
			from = end - int64(most)
		}
	}
	read := j.log.read(from, most)
	if !found && read.over {
		said = "until matches no line"
	}
	result := j.show(read, in.Cursor, most, said+", ")
	result.Metadata["found"] = found
	return result, nil
}

// show returns the result for a part of the job's log, with at most most bytes of
// text. said begins what is said of the job at the end.
func (j *job) show(read page, asked int64, most int, said string) tool.Result {
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
		what := "are no longer available"
		if asked >= j.log.oldest() {
			what = fmt.Sprintf("are left out: cursor %d", asked)
		}
		fmt.Fprintf(&b, "[%s earlier bytes %s]\n", thousands(skipped), what)
	}
	b.WriteString(shown)
	if read.over && j.err == nil {
		facts["exit_code"] = j.result.ExitCode
	}
	text := line(b.String())
	if next < read.total {
		text += fmt.Sprintf("[%s%s more bytes: cursor %d]\n", said, thousands(read.total-next), next)
	} else {
		text += fmt.Sprintf("[%s%s; next cursor %d]\n", said, facts["state"], next)
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
