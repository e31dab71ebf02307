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
	// RanMS is how long it has run or ran, in milliseconds, and CPUMS the processor time of
	// one that has ended.
	RanMS int64 `json:"ran_ms"`
	CPUMS int64 `json:"cpu_ms,omitempty"`
	Bytes int64 `json:"bytes"`
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
		used := "ran " + seconds(info.RanMS)
		if !info.Running {
			used += ", CPU " + seconds(info.CPUMS)
		}
		fmt.Fprintf(&b, "%s  %s  since %s  %s  %s bytes  %s\n", info.Job, info.State, info.Started, used, thousands(info.Bytes), info.Command)
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
	ran, used := time.Since(j.started), time.Duration(0)
	if j.over() {
		ran, used = j.result.Duration, j.result.CPUTime
	}
	return jobInfo{
		RanMS: ran.Milliseconds(), CPUMS: used.Milliseconds(),
		Job: j.id, Command: tool.VisibleName(shown), Cwd: j.dir, State: j.state(), Running: !j.over(), Pty: j.keys != nil,
		Started: j.started.UTC().Format(time.RFC3339), Bytes: j.log.read(0, 0).total,
	}
}

// seconds shows milliseconds as seconds.
func seconds(ms int64) string { return fmt.Sprintf("%d.%d s", ms/1000, ms%1000/100) }
