// Command disk is a plugin that executes a program, du, with package sdk/proc.
// Its block in the host's config.hcl:
//
//	plugin "disk" {
//	  tier   = "read_only"
//	  claims = "trust"
//	  sandbox {
//	    filesystem {
//	      workspace = "ro"
//	      exec      = ["system"]
//	    }
//	  }
//	}
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Args are the arguments of a call.
type Args struct {
	Path  string `json:"path" jsonschema:"file or directory to measure" role:"path"`
	Depth int    `json:"depth,omitempty" jsonschema:"how many levels of directories to list; 0 gives the sum alone" enum:"0,1,2,3,4,5" default:"1"`
}

// Usage is the result of a call.
type Usage struct {
	Entries []Entry `json:"entries" jsonschema:"the path itself and the directories in it, the largest first"`
	Missing string  `json:"missing,omitempty" jsonschema:"the first of what du could not count, if there is anything"`
}

// Entry is a file, or a directory with all that is in it.
type Entry struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes" jsonschema:"the space that it takes on disk"`
}

// Text implements [sdk.Texter].
func (u Usage) Text() string {
	var b strings.Builder
	for _, e := range u.Entries {
		fmt.Fprintf(&b, "%v  %s\n", tool.ByteSize(e.Bytes), tool.VisibleName(e.Path))
	}
	if u.Missing != "" {
		fmt.Fprintf(&b, "Not all is counted: %s\n", tool.VisibleName(u.Missing))
	}
	return b.String()
}

type disk struct {
	du      string // an absolute path
	timeout time.Duration
}

func main() { newPlugin(disk{du: "/usr/bin/du", timeout: 20 * time.Second}).Serve() }

func newPlugin(d disk) *sdk.Plugin {
	p := sdk.New("disk", "1.0.0")
	sdk.AddTool(p, tool.Spec{
		Name:        "disk_usage",
		Description: "Measures the disk space of a file or directory and of the directories in it. Returns a list, the largest first.",
		Tier:        tool.ReadOnly,
		Idempotent:  true,
		MaxOutput:   64 * tool.KiB,
		Timeout:     30 * time.Second, // above du's own maximum, whose message is better
	}, d.usage)
	return p
}

func (d disk) usage(ctx context.Context, call *sdk.Call, in Args) (Usage, error) {
	folders, err := roots.For(call, nil) // nothing is changed
	if err != nil {
		return Usage{}, err
	}
	defer func() { _ = folders.Close() }() // nothing was written
	if _, err := folders.Stat(in.Path); err != nil {
		return Usage{}, err // not there, or not the caller's
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	result, err := proc.Run(ctx, d.command(call, path.Clean(in.Path), in.Depth))
	refused, _ := errors.AsType[*tool.Error](err)
	switch smaller := "name a directory in it, or give a smaller depth"; {
	case result.TimedOut, errors.Is(err, context.DeadlineExceeded):
		return Usage{}, tool.Errorf(tool.Timeout, "du has not come to an end within %v", d.timeout).WithHint("%s", smaller)
	case refused != nil && (refused.Code == tool.NotFound || refused.Code == tool.PermissionDenied):
		return Usage{}, tool.Errorf(tool.Unavailable, "the program du cannot be executed").
			WithHint("the user must install it, or let this plugin execute it (exec in its sandbox)").WithCause(err)
	case err != nil, result.Canceled:
		return Usage{}, cmp.Or(err, ctx.Err())
	case result.Signal != 0:
		return Usage{}, tool.Errorf(tool.ResourceExhausted, "du was ended: %v", result.Signal).WithHint("%s", smaller)
	case result.Stdout.Omitted > 0:
		return Usage{}, tool.Errorf(tool.ResourceExhausted, "the list is too long: %d bytes", result.Stdout.Total).WithHint("%s", smaller)
	case result.Stdout.Total == 0:
		return Usage{}, tool.Errorf(tool.Failed, "du has failed: exit code %d", result.ExitCode).WithHint("%s", result.Stderr)
	}
	return parse(result.Stdout.String(), result.Stderr.String())
}

// command returns du with its permissions.
func (d disk) command(call *sdk.Call, name string, depth int) proc.Command {
	dir, target := call.Roots()[0], name
	if !path.IsAbs(name) {
		target = path.Join(dir, name)
	}
	return proc.Command{
		Path:      d.du,
		Args:      []string{"-k", "-H", "-0", "-d", strconv.Itoa(depth), "--", name}, // -0: a name can hold line feeds
		Dir:       dir,
		MaxOutput: call.MaxOutput() / 2, // as JSON it is longer
		Limits:    proc.Limits{CPUTime: 10 * time.Second, Memory: 128 * tool.MiB},
		Rules: &proc.Rules{
			Read:     []string{target, "/etc/ld.so.cache"},
			Execute:  []string{d.du, "/lib", "/lib64", "/usr/lib"}, // and its loader
			Optional: true,                                         // the plugin's own sandbox holds without
		},
	}
}

// parse reads what du has found, and the first of its complaints.
func parse(found, complaints string) (Usage, error) {
	var u Usage
	u.Missing, _, _ = strings.Cut(strings.TrimSpace(complaints), "\n")
	for line := range strings.FieldsFuncSeq(found, func(r rune) bool { return r == 0 }) {
		kib, name, _ := strings.Cut(line, "\t")
		n, err := strconv.ParseInt(kib, 10, 64)
		if err != nil {
			return Usage{}, tool.Errorf(tool.Failed, "du says %q, expected a size and a name", line)
		}
		u.Entries = append(u.Entries, Entry{Path: path.Clean(name), Bytes: n << 10})
	}
	slices.SortFunc(u.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Path, b.Path))
	})
	return u, nil
}
