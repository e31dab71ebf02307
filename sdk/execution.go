package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of one part of a command.
const (
	maxPartWords = 16_000
	maxPartBytes = 1 << 20
)

// CommandTree returns the argument of [tool.RoleCommand] as a syntax tree, in the
// typed JSON of mvdan.cc/sh, or nil. If it is not nil, the tool must execute the tree,
// call [Call.MayRun] for each part, and never pass the text of the argument to a
// shell. Only tools with CommandTree in their [tool.Spec] get a tree.
func (c *Call) CommandTree() json.RawMessage { return c.data.CommandTree }

// MayRun asks the host whether one part of a command tree may run, right before the
// part is executed. It returns nil if the part may run. It blocks until the host
// answers, which asks no person, or ctx ends. An error is of type [*tool.Error]; it
// must end the command and be the result of the call. MayRun does not ask about a part
// that the host has answered in advance.
func (c *Call) MayRun(ctx context.Context, e tool.Execution) error {
	if c.events == nil {
		return tool.Errorf(tool.PermissionDenied, "a preview executes nothing")
	}
	texts, bytes := append(slices.Concat(e.Argv, e.Environment), e.Directory, e.File), 0
	for _, text := range texts {
		bytes += len(text)
	}
	if len(texts) > maxPartWords || bytes > maxPartBytes {
		return tool.Errorf(tool.PermissionDenied, "%s gets %d words of %d bytes; without approval it may get %d words of %d bytes", tool.VisibleName(slices.Concat(e.Argv, []string{e.File})[0]), len(texts), bytes, maxPartWords, maxPartBytes).
			WithHint("what came before it has run. Split it into commands with fewer words, as xargs does")
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return tool.Errorf(tool.PermissionDenied, "this needs approval: %s, which is not valid UTF-8", tool.VisibleName(text)).
				WithHint("write the words of the command out")
		}
	}
	if ctx.Err() == nil && c.judged(&e) {
		return nil
	}
	reply, err := c.host.ask(ctx, hostRequest{ticket: c.data.Context.Ticket, execution: &e})
	if err == nil && !reply.mayRun {
		err = tool.Errorf(tool.PermissionDenied, "the host has not said that this may run")
	}
	return err
}

// judgedFor bounds the age of an answer in advance, in case the clock of the machine is
// set back before [tool.Call.JudgedUntil].
const judgedFor = 10 * time.Second

// judged reports whether the host has answered in advance that a part may run. The
// answer is a function of the words of the part, its variables, its directory and the
// policy, except for symbolic links: the host answers in advance only if it met none on
// the paths that the part may name. So it would answer the same now if there is still
// none. A part that differs in any way, an old answer and a link lead to the question.
func (c *Call) judged(e *tool.Execution) bool {
	if !time.Now().Before(c.data.JudgedUntil) || time.Since(c.since) > judgedFor {
		return false
	}
	i := slices.IndexFunc(c.data.Judged, func(j tool.Judged) bool {
		return slices.Equal(j.Argv, e.Argv) && slices.Equal(j.Environment, e.Environment) &&
			j.Directory == e.Directory && j.File == e.File && j.Write == e.Write
	})
	return i >= 0 && !slices.ContainsFunc(c.data.Judged[i].Unlinked, linked)
}

// linked reports whether a path leads through a symbolic link, or may.
func linked(path string) bool {
	if !filepath.IsAbs(path) {
		return true
	}
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		switch {
		case err == nil && info.Mode().Type() == fs.ModeSymlink:
			return true
		case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return true
		case path == filepath.Dir(path):
			return false
		}
	}
}
