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
	// keeps no more. The rest is read and counted.
	maxStreamed = 256 * tool.MiB
	// progressEvery is the least time between two reports of progress.
	progressEvery = time.Second
	// maxLine is how much of a line a report of progress shows.
	maxLine = 200
)

// follower passes on what a command writes as it comes.
type follower struct {
	call   *sdk.Call
	bytes  int64
	told   time.Time // when progress was last reported
	failed bool      // the caller has gone
}

func newFollower(call *sdk.Call) *follower { return &follower{call: call} }

// take is [proc.Command.Output].
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

// lastLine returns the last line of data that is not empty, as far as a report
// of progress shows it.
func lastLine(data []byte) string {
	data = bytes.TrimRight(data, "\r\n\t ")
	line := data[bytes.LastIndexAny(data, "\r\n")+1:]
	text := strings.ToValidUTF8(string(line[:min(len(line), maxLine)]), "\uFFFD")
	return tool.VisibleName(text)
}
