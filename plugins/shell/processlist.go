package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// jobInfo describes a job.
type jobInfo struct {
	Job     string `json:"job"`
	Command string `json:"command"`
	Cwd     string `json:"cwd"`
	State   string `json:"state"`
	Running bool   `json:"running"`
	Pty     bool   `json:"pty"`
	Started string `json:"started"`
	Bytes   int64  `json:"bytes"`
}

// maxShown is how many bytes of a command a list shows.
const maxShown = 120

// list lists the jobs of the session.
func (s *shell) list(_ context.Context, call *sdk.Call, _ struct{}) (tool.Result, error) {
	jobs := s.owners.jobsOf(ownerOf(call))
	if len(jobs) == 0 {
		return tool.TextResult("This session has no jobs."), nil
	}
	var b strings.Builder
	var all []jobInfo
	for _, j := range jobs {
		info := j.info()
		all = append(all, info)
		fmt.Fprintf(&b, "%s  %s  since %s  %s bytes  %s\n", info.Job, info.State, info.Started, thousands(info.Bytes), info.Command)
	}
	result := tool.TextResult(b.String())
	result.Metadata = map[string]any{"jobs": all}
	return result, nil
}

func (j *job) info() jobInfo {
	shown := j.shown
	if len(shown) > maxShown {
		shown = string(untilWhole([]byte(shown[:maxShown]))) + "…"
	}
	return jobInfo{
		Job: j.id, Command: tool.VisibleName(shown), Cwd: j.dir, State: j.state(), Running: !j.over(), Pty: j.keys != nil,
		Started: j.started.UTC().Format(time.RFC3339), Bytes: j.log.read(0, 0).total,
	}
}
