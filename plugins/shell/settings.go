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

// The values of the setting backend.
const (
	backendHost     = "host"     // in a new shell for each command
	backendSession  = "session"  // in the shell of the session
	backendDisabled = "disabled" // not at all
)

// settings is the plugin's block in the host's configuration.
type settings struct {
	proxyEnv []string // the variables by which commands find the host's proxy

	Backend string `json:"backend,omitempty" jsonschema:"how shell_exec runs commands: host, each in a new shell; session, in one shell per session; disabled, not at all" enum:"host,session,disabled" default:"host"`

	Timeout    time.Duration `json:"timeout,omitempty" jsonschema:"default time-out of a command" default:"60s"`
	MaxTimeout time.Duration `json:"max_timeout,omitempty" jsonschema:"maximum time-out that a call can set" default:"10m"`
	Grace      time.Duration `json:"grace,omitempty" jsonschema:"time between SIGTERM and SIGKILL when a command times out" min:"0s" max:"5s" default:"200ms"`
	MaxOutput  tool.ByteSize `json:"max_output,omitempty" jsonschema:"how much of each output of a command or job is kept" min:"1KiB" max:"64MiB" default:"1MiB"`

	Path string            `json:"path,omitempty" jsonschema:"PATH of commands; default is the plugin's own"`
	Pass []string          `json:"pass,omitempty" jsonschema:"names of variables that commands inherit from the plugin's environment; env.pass in the sandbox sets which variables the plugin has"`
	Env  map[string]string `json:"env,omitempty" jsonschema:"additional variables for commands"`

	Limits limits `json:"limits,omitzero" jsonschema:"resource limits of each process of a command; 0 means the sandbox's limit, for processes three quarters of it"`

	MaxJobs          int           `json:"max_jobs,omitempty" jsonschema:"maximum number of running jobs of a session" min:"1" max:"1000" default:"16"`
	MaxJobsPerUser   int           `json:"max_jobs_per_user,omitempty" jsonschema:"maximum number of running jobs of a user, in all sessions" min:"1" max:"1000" default:"64"`
	MaxShellsPerUser int           `json:"max_shells_per_user,omitempty" jsonschema:"maximum number of session shells of a user with backend session; the longest idle one is ended to make room" min:"1" max:"1000" default:"16"`
	JobTime          time.Duration `json:"job_time,omitempty" jsonschema:"maximum run time of a job" default:"24h"`
	SessionIdle      time.Duration `json:"session_idle,omitempty" jsonschema:"how long a session may be idle, with no call in progress, before its jobs and its shell are ended" default:"4h"`

	Apart      bool     `json:"apart,omitempty" jsonschema:"whether to keep commands from signaling or inspecting processes they did not start, such as those of other sessions, where the kernel supports it" default:"true"`
	Read       []string `json:"read,omitempty" jsonschema:"paths that commands may read: absolute paths, and the words system, workspace, home and tmp; if read, write or exec is set, commands may use no other paths"`
	Write      []string `json:"write,omitempty" jsonschema:"paths that commands may read and change, in the form of read"`
	Exec       []string `json:"exec,omitempty" jsonschema:"paths that commands may read and execute, in the form of read"`
	Unconfined bool     `json:"unconfined,omitempty" jsonschema:"whether to run commands even if the plugin has no sandbox"`
}

// limits are the resource limits of each process of a command.
type limits struct {
	CPUTime   time.Duration `json:"cpu_time,omitempty" jsonschema:"processor time in whole seconds" default:"1h"`
	Memory    tool.ByteSize `json:"memory,omitempty" jsonschema:"heap and private mappings" min:"0B"`
	FileSize  tool.ByteSize `json:"file_size,omitempty" jsonschema:"maximum size of a file that can be written" min:"0B"`
	OpenFiles int           `json:"open_files,omitempty" jsonschema:"number of open files" min:"0"`
	Processes int           `json:"processes,omitempty" jsonschema:"number of processes and threads of the account" min:"0"`
}

func (l limits) proc() proc.Limits {
	return proc.Limits{
		CPUTime: l.CPUTime, Memory: l.Memory, FileSize: l.FileSize, OpenFiles: uint64(l.OpenFiles), Processes: uint64(l.Processes),
	}
}

// mistakes returns all errors in the settings.
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
			mistake("pass", "has %q, which commands may not be given", name)
		}
	}
	for name, value := range s.Env {
		if !validVariable(name) || hasNUL(value) {
			mistake("env", "has %q, which commands may not be given", name)
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
