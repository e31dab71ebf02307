package reaper

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Report is one line from a reaper to its plugin. Exactly one of its fields is set.
type Report struct {
	Failed  *Failure
	Started *Started
	Exited  *Exited
	Ended   *Ended
}

// Step is where the start of a command failed.
type Step string

// The steps of a start.
const (
	StepReaper     Step = "reaper"
	StepDir        Step = "dir"
	StepFork       Step = "fork"
	StepTerminal   Step = "terminal"
	StepFiles      Step = "files"
	StepLimit      Step = "limit" // Failure.Index is its place in the order
	StepRules      Step = "rules"
	StepExecutable Step = "execute"
)

// Failure is why the command was not started.
type Failure struct {
	Step  Step
	Index int
	Errno syscall.Errno // 0 if it is not the system that refused
	Text  string
}

// Started says that the command has been executed.
type Started struct {
	Restricted bool // by the order's rules
}

// Exited is the command's own end. The processes that it left are being killed.
type Exited struct {
	Status syscall.WaitStatus
}

// Ended says that nothing is left of the command.
type Ended struct {
	Strays  int    // what died of SIGKILL after the command
	Dir     string // where the command ended; "" if that no longer exists
	CPUTime time.Duration
	MaxRSS  int64 // KiB
	Again   bool  // the reaper waits for the next order
}

// String returns the report in transport form.
func (r Report) String() string {
	switch {
	case r.Failed != nil:
		text := strings.ReplaceAll(r.Failed.Text, "\n", " ")
		return fmt.Sprintf("failed %s %d %d %s\n", r.Failed.Step, r.Failed.Index, uint(r.Failed.Errno), text)
	case r.Started != nil:
		return fmt.Sprintf("started %t\n", r.Started.Restricted)
	case r.Exited != nil:
		return fmt.Sprintf("exited %d\n", uint32(r.Exited.Status))
	default:
		return fmt.Sprintf("ended %d %d %d %t %q\n", r.Ended.Strays, r.Ended.CPUTime, r.Ended.MaxRSS, r.Ended.Again, r.Ended.Dir)
	}
}

// ParseReport reads a line.
func ParseReport(line string) (Report, error) {
	var r Report
	var err error
	kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	switch kind {
	case "failed":
		r.Failed = &Failure{}
		fields := strings.SplitN(rest, " ", 4)
		if len(fields) == 4 {
			r.Failed.Step, r.Failed.Text = Step(fields[0]), fields[3]
			rest = fields[1] + " " + fields[2]
		}
		_, err = fmt.Sscanf(rest, "%d %d", &r.Failed.Index, &r.Failed.Errno)
	case "started":
		r.Started = &Started{}
		r.Started.Restricted, err = strconv.ParseBool(rest)
	case "exited":
		r.Exited = &Exited{}
		_, err = fmt.Sscanf(rest, "%d", &r.Exited.Status)
	case "ended":
		r.Ended = &Ended{}
		_, err = fmt.Sscanf(rest, "%d %d %d %t %q", &r.Ended.Strays, &r.Ended.CPUTime, &r.Ended.MaxRSS, &r.Ended.Again, &r.Ended.Dir)
	default:
		err = fmt.Errorf("the report %q is unknown", line)
	}
	return r, err
}
