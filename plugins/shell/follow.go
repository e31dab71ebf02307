package main

import (
	"bytes"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxStreamed is how much of its output a command streams to the host, which
	// keeps no more. The rest is only counted.
	maxStreamed = 256 * tool.MiB
	// progressEvery is the minimum time between two progress reports.
	progressEvery = time.Second
	// maxLine is how many bytes of a line a progress report shows.
	maxLine = 200
)

// follower streams the output of a command to the caller.
type follower struct {
	call   *sdk.Call
	bytes  int64
	told   time.Time // when progress was last reported
	failed bool      // the caller is gone
}

func newFollower(call *sdk.Call) *follower { return &follower{call: call} }

// take implements [proc.Command.Output].
func (f *follower) take(stream proc.Stream, data []byte) {
	f.bytes += int64(len(data))
	if f.failed || f.bytes > int64(maxStreamed) {
		return
	}
	var err error
	if stream == proc.Stderr {
		_, err = f.call.Stderr().Write(data)
	} else {
		_, err = f.call.Write(data)
	}
	f.failed = err != nil
	if now := time.Now(); now.Sub(f.told) >= progressEvery {
		f.told = now
		f.call.Progress(tool.Progress{Progress: float64(f.bytes), Message: lastLine(data)})
	}
}

// lastLine returns the last line of data that is not empty, shortened for a
// progress report.
func lastLine(data []byte) string {
	data = bytes.TrimRight(data, "\r\n\t ")
	line := data[bytes.LastIndexAny(data, "\r\n")+1:]
	text := strings.ToValidUTF8(string(line[:min(len(line), maxLine)]), "\uFFFD")
	return tool.VisibleName(text)
}
