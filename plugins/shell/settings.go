package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The ways in which shell_exec runs a command.
const (
	backendHost     = "host"     // each in a shell of its own
	backendSession  = "session"  // in the shell of its session
	backendDisabled = "disabled" // not at all
)

// settings are the plugin's block in the host's configuration.
type settings struct {
	Backend string `json:"backend,omitempty" jsonschema:"how shell_exec runs a command: host, in a shell of its own; session, in one that lives as long as the session; disabled, not at all" enum:"host,session,disabled" default:"host"`

	Timeout    time.Duration `json:"timeout,omitempty" jsonschema:"how long a command may take that says nothing else" default:"60s"`
	MaxTimeout time.Duration `json:"max_timeout,omitempty" jsonschema:"how long a command may ask for" default:"10m"`
	Grace      time.Duration `json:"grace,omitempty" jsonschema:"the time between SIGTERM and SIGKILL for a command whose time is over" min:"0s" max:"5s" default:"200ms"`
	MaxOutput  tool.ByteSize `json:"max_output,omitempty" jsonschema:"how much is kept of each output of a command, and of that of a job" min:"1KiB" max:"64MiB" default:"1MiB"`

	Path string            `json:"path,omitempty" jsonschema:"the PATH of commands; the plugin's own if it is not given"`
	Pass []string          `json:"pass,omitempty" jsonschema:"names of variables that commands get from the plugin's environment, which has those of env.pass in its sandbox"`
	Env  map[string]string `json:"env,omitempty" jsonschema:"variables that commands get besides"`

	Limits limits `json:"limits,omitzero" jsonschema:"what each process of a command may use; 0 is what the sandbox lets it, and of its processes three quarters"`

	MaxJobs          int           `json:"max_jobs,omitempty" jsonschema:"how many jobs a session may have at a time" min:"1" max:"1000" default:"16"`
	MaxJobsPerUser   int           `json:"max_jobs_per_user,omitempty" jsonschema:"how many jobs a user may have at a time, in all sessions" min:"1" max:"1000" default:"64"`
	MaxShellsPerUser int           `json:"max_shells_per_user,omitempty" jsonschema:"how many living shells a user may have with the backend session; the one idle for longest makes room" min:"1" max:"1000" default:"16"`
	JobTime          time.Duration `json:"job_time,omitempty" jsonschema:"how long a job may run" default:"24h"`
	SessionIdle      time.Duration `json:"session_idle,omitempty" jsonschema:"the jobs and the shell of a session end when it has called nothing for that long" default:"4h"`

	Apart      bool     `json:"apart,omitempty" jsonschema:"commands can neither signal nor look into processes that they have not started, such as those of others, where the kernel can see to that" default:"true"`
	Read       []string `json:"read,omitempty" jsonschema:"what commands may read: absolute paths, and the words system, workspace, home and tmp; with read, write or exec they may use nothing else"`
	Write      []string `json:"write,omitempty" jsonschema:"what commands may read and change, as in read"`
	Exec       []string `json:"exec,omitempty" jsonschema:"what commands may read and execute, as in read"`
	Unconfined bool     `json:"unconfined,omitempty" jsonschema:"run commands even if the plugin was started without a sandbox"`
}

// limits are the resource limits of each process of a command.
type limits struct {
	CPUTime   time.Duration `json:"cpu_time,omitempty" jsonschema:"processor time, in whole seconds" default:"1h"`
	Memory    tool.ByteSize `json:"memory,omitempty" jsonschema:"heap and private mappings" min:"0B"`
	FileSize  tool.ByteSize `json:"file_size,omitempty" jsonschema:"the largest file that can be written" min:"0B"`
	OpenFiles int           `json:"open_files,omitempty" jsonschema:"open files" min:"0"`
	Processes int           `json:"processes,omitempty" jsonschema:"processes and threads of the account" min:"0"`
}

func (l limits) proc() proc.Limits {
	return proc.Limits{
		CPUTime: l.CPUTime, Memory: l.Memory, FileSize: l.FileSize, OpenFiles: uint64(l.OpenFiles), Processes: uint64(l.Processes),
	}
}

// mistakes says what is wrong with the settings.
func (s settings) mistakes() []error {
	var wrong []error
	mistake := func(path, format string, args ...any) {
		wrong = append(wrong, &sdk.SettingError{Path: strings.Split(path, "."), Summary: fmt.Sprintf(strings.ReplaceAll(path, ".", ": ")+" "+format, args...)})
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"timeout", s.Timeout}, {"max_timeout", s.MaxTimeout}, {"job_time", s.JobTime}, {"session_idle", s.SessionIdle}} {
		if d.value <= 0 {
			mistake(d.name, "is %v, expected more than 0", d.value)
		}
	}
	if s.Timeout > s.MaxTimeout {
		mistake("timeout", "is %v, which is more than max_timeout (%v)", s.Timeout, s.MaxTimeout)
	}
	if s.Limits.CPUTime < 0 || s.Limits.CPUTime%time.Second != 0 {
		mistake("limits.cpu_time", "is %v, expected whole seconds", s.Limits.CPUTime)
	}
	for _, name := range s.Pass {
		if !validVariable(name) {
			mistake("pass", "has %q, which no command gets", name)
		}
	}
	for name, value := range s.Env {
		if !validVariable(name) || hasNUL(value) {
			mistake("env", "has %q, which no command gets", name)
		}
	}
	for name, list := range map[string][]string{"read": s.Read, "write": s.Write, "exec": s.Exec} {
		for _, path := range list {
			if !filepath.IsAbs(path) && !slices.Contains(ruleWords(), path) {
				mistake(name, "has %q, expected an absolute path or one of %s", path, strings.Join(ruleWords(), ", "))
			}
		}
	}
	return wrong
}
