package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// sessionArgs are the arguments of a command for the shell of the session. Its
// effect depends on earlier commands, so rules that see only this command must not
// allow it.
type sessionArgs struct {
	Command string `json:"command" jsonschema:"command line" role:"script" alias:"cmd,script,shell_command,bash,sh" raw:"true"`
	Cwd     string `json:"cwd,omitempty" jsonschema:"directory to change to first" role:"path" alias:"workdir"`
	Stdin   string `json:"stdin,omitempty" jsonschema:"standard input" role:"script"`
	runArgs
}

// execSession runs a command in the shell of the session.
func (s *shell) execSession(ctx context.Context, call *sdk.Call, in sessionArgs) (tool.Result, error) {
	p, err := s.prepare(call, commandArgs{Command: in.Command}, "dumb") // a new shell starts in the workspace
	if err != nil {
		return tool.Result{}, err
	}
	asked, err := p.settings.timeout(in.Timeout)
	if err != nil {
		return tool.Result{}, err
	}
	o := order{id: rand.Text(), text: in.Command, stdin: os.DevNull, interleave: in.Interleave}
	if in.Cwd != "" {
		if o.dir, err = directory(call, in.Cwd); err != nil {
			return tool.Result{}, err
		}
	}
	if in.Stdin != "" {
		if o.stdin, err = p.at.inputFile(in.Stdin); err != nil {
			return tool.Result{}, err
		}
		defer func() { _ = os.Remove(o.stdin) }() // the directory is emptied when the plugin ends
	}
	one, leave, err := s.owners.enter(ctx, ownerOf(call))
	if err != nil {
		return tool.Result{}, err
	}
	defer leave()
	if sdk.CheckPreview(call.PreviewDigest(), one.digest(), nil) != nil {
		return tool.Result{}, sdk.ChangedSincePreview("the shell of the session has run other commands")
	}
	l, replaced, err := s.owners.living(one, func() (*living, error) { return startLiving(ctx, p) })
	if err != nil {
		return tool.Result{}, notStarted(err)
	}
	timeout := p.settings.within(ctx, asked) // the call may have waited for other commands
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ended, err := l.run(bounded, o, p.settings.MaxOutput, newFollower(call).take)
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	one.untold = err == nil && !ended.lost
	if err != nil {
		return tool.Result{}, tool.Errorf(tool.Failed, "the shell of the session ended unexpectedly; it is not known how far the command ran").WithCause(err)
	}
	ended.timeout, ended.short, ended.replaced = timeout, timeout < asked, replaced
	return ended.result(budget(call)), nil
}

// inputFile writes a command's input to a file and returns its path.
func (at places) inputFile(text string) (string, error) {
	f, err := os.CreateTemp(at.tmp, "stdin-")
	if err == nil {
		_, err = f.WriteString(text)
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		return "", tool.Errorf(tool.ResourceExhausted, "the input of the command cannot be stored").WithHint("pass less in stdin").WithCause(err)
	}
	return f.Name(), nil
}

// previewSession describes the state of the shell in which the command would run.
func (s *shell) previewSession(_ context.Context, call *sdk.Call, in sessionArgs) (tool.Preview, error) {
	if why := s.disabled.Load(); why != nil {
		return tool.Preview{}, why
	}
	one := s.owners.look(ownerOf(call))
	summary := "Runs in a new shell in the workspace"
	if l := one.alive(); l != nil {
		dir, number := l.state()
		where := tool.VisibleName(dir)
		if dir == "" {
			where = "a directory that no longer exists"
		}
		summary = fmt.Sprintf("Runs in the shell of the session, after %s, in %s", plural(number, "command", "commands"), where)
	}
	text := in.Command
	if in.Cwd != "" {
		text = "cd " + in.Cwd + "\n" + text
	}
	if in.Stdin != "" {
		text = strings.TrimSuffix(text, "\n") + "\n\nStandard input:\n" + in.Stdin
	}
	return tool.Preview{Summary: summary, Content: []tool.Content{tool.Text(text)}, Digest: one.digest()}, nil
}

// alive returns the session's shell, or nil if there is none. The receiver may be
// nil.
func (s *session) alive() *living {
	if s == nil {
		return nil
	}
	l := s.shell.Load()
	if l == nil {
		return nil
	}
	select {
	case <-l.process.Done():
		return nil
	default:
		return l
	}
}

// digest identifies the state of the session's shell.
func (s *session) digest() []byte {
	l := s.alive()
	if l == nil {
		return []byte("none")
	}
	dir, number := l.state()
	return fmt.Appendf(nil, "%s %d %s", l.id, number, dir)
}

func (l *living) state() (dir string, number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dir, l.number
}
