package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

// change is a planned change. Planning reads everything that the change depends on.
type change = sdk.Change[tool.Result]

// addChange adds a tool that changes something. plan changes nothing; it refuses a call
// that cannot succeed. The description is in descriptions/NAME.md.
func addChange[In any](p *sdk.Plugin, g *git, plan func(context.Context, *access, In) (change, error), spec tool.Spec) {
	spec.Category = "git"
	spec.Description = sdk.Description(descriptions, spec.Name)
	if spec.Timeout == 0 {
		spec.Timeout = localTimeout
	}
	sdk.AddPlanned(p, spec, func(ctx context.Context, call *sdk.Call, in In) (change, error) {
		return plan(ctx, g.access(call), in)
	})
}

// stateOf joins parts without ambiguity.
func stateOf(parts ...string) string { return fmt.Sprintf("%q", parts) }

// maxPreview is the maximum size of a diff or list in a preview, in bytes.
const maxPreview = 256 << 10

// preview is the beginning of a diff, and the digest of the whole diff.
type preview struct {
	text bytes.Buffer
	all  int64
	sum  [sha256.Size]byte
	// leftOut is the number of forbidden files that are left out.
	leftOut int
}

// previewOf returns the diff for a preview, without forbidden files. It lists the files
// that differ after it has made the diff, so that no forbidden file can appear in
// between.
func (r *repository) previewOf(ctx context.Context, subcommand string, flags, states, paths, env []string) (*preview, error) {
	what := r.selectAllowed(states, paths)
	for range maxRepeats {
		p, err := r.tryPreview(ctx, what, subcommand, flags, env)
		if err != nil || len(r.call.Files().Forbidden) == 0 {
			return p, err
		}
		names := what.command(subcommand, namesAlone(), nil, 0)
		names.env = env
		files, err := r.listOf(ctx, names)
		if err != nil {
			return nil, err
		}
		if what.leaveOut(files...); len(what.leftOut) == p.leftOut {
			return p, nil
		}
		if err := what.tooMany(); err != nil {
			return nil, err
		}
	}
	return nil, changedMeanwhile()
}

// tryPreview is one run of previewOf.
func (r *repository) tryPreview(ctx context.Context, what *selection, subcommand string, flags, env []string) (*preview, error) {
	p := &preview{leftOut: len(what.leftOut)}
	hash := sha256.New()
	c := what.command(subcommand, flags, writerFunc(func(data []byte) {
		hash.Write(data)
		p.all += int64(len(data))
		p.text.Write(data[:min(len(data), max(0, maxPreview-p.text.Len()))])
	}), tool.TiB)
	c.env = env
	_, err := r.run(ctx, c)
	copy(p.sum[:], hash.Sum(nil))
	return p, err
}

// content returns the diff for a preview, after notes about missing parts.
func (p *preview) content() (content []tool.Content) {
	if p.leftOut > 0 {
		content = append(content, tool.Text("NOT ALL IS SHOWN: "+display.Plural(p.leftOut, "forbidden file")+" left out."))
	}
	text := p.text.Bytes()
	if p.all == 0 {
		return content
	}
	if p.all > int64(len(text)) {
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			text = text[:i+1]
		}
		content = append(content, tool.Text(fmt.Sprintf("NOT ALL IS SHOWN: the diff has %d bytes; %d bytes at its end are left out.", p.all, p.all-int64(len(text)))))
	}
	return append(content, tool.Text(strings.ToValidUTF8(string(text), "\uFFFD")))
}

type writerFunc func([]byte)

func (f writerFunc) Write(data []byte) (int, error) {
	f(data)
	return len(data), nil
}

// done returns the result of a change: a text, and facts for programs.
func done(facts map[string]any, effects []tool.Effect, format string, args ...any) tool.Result {
	result := tool.TextResult(fmt.Sprintf(format, args...))
	result.Effects = effects
	result.Structured, _ = json.Marshal(facts) // cannot fail: texts and numbers
	return result
}

// maxEffects is the maximum number of changed files in a result's effects.
const maxEffects = 500

// changedFiles returns the effects of a change on files and on the repository.
func (r *repository) changedFiles(paths []string, operation string) []tool.Effect {
	effects := []tool.Effect{{Kind: "git.changed", Target: r.shown, Operation: operation}}
	for _, path := range paths[:min(len(paths), maxEffects)] {
		effects = append(effects, tool.Effect{Kind: "file.changed", Target: string(r.show(path)), Operation: operation})
	}
	return effects
}

// refuseProtected refuses to change protected or forbidden files.
func (r *repository) refuseProtected(paths []string) error {
	if err := r.refuseForbidden(paths); err != nil {
		return err
	}
	for _, path := range paths {
		if words := protect.Words(r.call.Files().Protect, path); len(words) > 0 {
			return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", r.show(path)).
				WithHint("editors, agents or hooks run programs that this file names; the user can do this with git, or an administrator can remove %q from protect in the plugin's sandbox", words)
		}
	}
	for _, guarded := range r.call.Protected() {
		real, err := realPath(guarded, true)
		if err != nil || !within(real, r.worktree) {
			continue
		}
		for _, path := range paths {
			file := r.worktree + "/" + strings.TrimSuffix(path, "/")
			if within(file, real) || within(real, file) {
				return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", r.show(path)).
					WithHint("the file belongs to the host; no tool may change it")
			}
		}
	}
	return nil
}
