package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/clientfile"
	"github.com/toolhost/toolhost/internal/links"
	"github.com/toolhost/toolhost/sdk/tool"
)

// clientWritten is what `toolhost connect --json` prints.
type clientWritten struct {
	File    string `json:"file"`
	Backup  string `json:"backup,omitempty"`
	Changed bool   `json:"changed"`
	Diff    string `json:"diff"`
}

// writeClient shows what changes in a client's file, asks, and writes it.
func (a *app) writeClient(ctx context.Context, known clientfile.Client, name string, s clientfile.Server, o connectOptions) error {
	again := "connect " + known.Name + o.again
	paste := a.command(again+" --print") + " prints the text to paste"
	place, err := a.place()
	if err != nil {
		return err
	}
	target, err := known.Target(name, s, place)
	if err != nil {
		return &hintError{err, paste}
	}
	change, err := clientfile.Plan(target.File, target.Mode, target.Edit)
	if err != nil {
		return &hintError{fmt.Errorf("read the client's file, which stays as it is: %w", err), a.howToWrite(err, again, paste, o)}
	}
	wide := s.Token != "" && change.Private()
	out := clientWritten{File: target.File, Changed: change.Needed()}
	if out.Changed {
		out.Diff = change.Diff()
		if err := a.agreeToFile(ctx, target, again, out.Diff, o); err != nil {
			return err
		}
		if out.Backup, err = change.Write(); err != nil {
			return &hintError{fmt.Errorf("write the client's file: %w", err), a.howToWrite(err, again, paste, o)}
		}
	}
	if a.json {
		return a.printJSON(out)
	}
	text := line(out.File) + " already connects " + known.Name + ": nothing changed\n"
	if out.Changed {
		text = "wrote " + line(out.File) + "\n"
		if out.Backup != "" {
			text += "the old file is " + line(out.Backup) + "\n"
		}
		text += line(target.Next) + "\n"
	}
	_, err = fmt.Fprint(a.stdout, text)
	switch {
	case wide && target.Shared:
		fmt.Fprintln(a.stderr, "hint: the file holds a token: only its owner can read it now; keep it out of version control")
	case wide:
		fmt.Fprintln(a.stderr, "hint: the file holds a token: only its owner can read it now")
	case out.Changed && s.Token != "" && target.Shared:
		fmt.Fprintln(a.stderr, "hint: the file holds a token: keep it out of version control")
	}
	return err
}

// place returns where the command runs, and the configuration's workspace.
func (a *app) place() (clientfile.Place, error) {
	cfg, err := a.loadConfig()
	if err != nil {
		return clientfile.Place{}, err
	}
	dir, err := filepath.Abs(".")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return clientfile.Place{}, fmt.Errorf("find the current directory: %w", err)
	}
	workspace, err := cfg.Workspace.Of(auth.LocalUser(cfg.LocalUser))
	if err != nil {
		return clientfile.Place{}, fmt.Errorf("find the workspace: %w", err)
	}
	return clientfile.Place{Dir: dir, Workspace: links.Resolve(workspace)}, nil
}

// agreeToFile shows a change and asks for consent, unless --yes gave it.
func (a *app) agreeToFile(ctx context.Context, target clientfile.Target, again, diff string, o connectOptions) error {
	shown := strings.TrimSuffix(tool.Visible(diff), "\n")
	if isTerminal(a.stderr) {
		shown = strings.TrimSuffix(viewText(approval.ShowDiff(diff), a.stderr), "\n")
	}
	switch {
	case o.yes && a.json:
		return nil
	case o.yes:
		_, err := fmt.Fprintln(a.stderr, shown)
		return err
	case a.onTerminal():
		err := a.askYes(ctx, shown, "Write "+line(target.File)+"?", "nothing was written")
		if errors.Is(err, errUndecided) {
			return errors.New("nothing was written")
		}
		return err
	}
	fmt.Fprintln(a.stderr, shown)
	return &hintError{fmt.Errorf("nothing was written: no terminal to ask on for %s", target.File), a.command(again+" --yes") + " writes it"}
}

// howToWrite says what to type after an error.
func (a *app) howToWrite(err error, again, paste string, o connectOptions) string {
	switch {
	case errors.Is(err, clientfile.ErrChanged):
		return "type the same command again"
	case !o.managed || !errors.Is(err, fs.ErrPermission) || o.tokenFile != "": // root does not take another account's token
		return paste
	case o.yes:
		again += " --yes"
	}
	return "sudo " + a.commandAnywhere()(again) + " writes it"
}
