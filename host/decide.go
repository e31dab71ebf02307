package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/approval"
	"github.com/toolhost/toolhost/host/internal/client"
)

// decide carries a decision out that a person confirms, and prints what was
// decided.
func (a *app) decide(ctx context.Context, args []string, last, approves bool, question string, answer client.Answer) error {
	send := (*client.Client).Reject
	if approves {
		send = (*client.Client).Approve
	}
	return a.asApprover(ctx, func(c *client.Client) error {
		id, err := chooseApproval(ctx, c, args, last)
		if err != nil {
			return err
		}
		whole, err := c.Approval(ctx, id)
		if err != nil {
			return err
		}
		if whole.State == approval.Open { // else there is nothing to confirm: the host says what was decided
			err := a.confirm(ctx, whole.Record, question)
			if errors.Is(err, errUndecided) && approves {
				err = &hintError{err, a.command("approvals reject "+id) + " refuses the call"}
			}
			if err != nil {
				return err
			}
		}
		record, err := send(c, ctx, id, answer.Seen(whole.Record))
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(record)
		}
		_, err = fmt.Fprintf(a.stdout, "%s %s: %s\n", record.State, record.ID, line(record.Summary))
		for _, g := range record.Grants {
			if err == nil {
				_, err = fmt.Fprintf(a.stdout, "granted to %s %s: %s\n", line(g.User), lasts(g), line(g.Covers))
				fmt.Fprintf(a.stderr, "hint: %s takes that back\n", a.command("grants revoke "+g.ID))
			}
		}
		return err
	})
}

// chooseApproval returns the id that a command is about: the one that it names,
// the last one that was asked, or the only one that is open.
func chooseApproval(ctx context.Context, c *client.Client, args []string, last bool) (string, error) {
	switch {
	case len(args) == 1 && last:
		return "", &usageError{errors.New("an ID and --last exclude each other")}
	case len(args) == 1:
		return args[0], nil
	}
	open, err := c.Approvals(ctx, client.ApprovalFilter{States: []approval.State{approval.Open}})
	switch {
	case err != nil:
		return "", err
	case len(open) == 0:
		return "", errors.New("no call waits for a person")
	case len(open) == 1 || last:
		return open[0].ID, nil
	}
	return "", &usageError{fmt.Errorf("%d calls wait for a person: give the ID of one, which toolhost approvals list shows, or --last", len(open))}
}

// shownFile is a file in the state directory that says which approval was last
// shown to this account.
const shownFile = "shown.json"

// shown says what of which approval was shown.
type shown struct {
	ID            string `json:"id"`
	ArgumentsHash string `json:"arguments_hash"`
	PreviewDigest string `json:"preview_digest"`
}

func shownOf(r approval.Record) shown { return shown{r.ID, r.ArgumentsHash, r.PreviewDigest} }

// noteShown remembers that an approval was shown, in the place of the one before.
func (a *app) noteShown(r approval.Record) error {
	path, err := a.shownPath()
	if err != nil {
		return err
	}
	text, err := json.Marshal(shownOf(r))
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// wasShown reports whether an approval, as it is, is the last one that was shown.
// What cannot be read was not.
func (a *app) wasShown(r approval.Record) bool {
	var last shown
	path, err := a.shownPath()
	if err != nil {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(text, &last) == nil && last == shownOf(r)
}

func (a *app) shownPath() (string, error) {
	stateDir, err := a.stateDir()
	return filepath.Join(stateDir, shownFile), err
}

// errUndecided ends a command whose user did not say yes.
var errUndecided = errors.New("nothing was decided")

// confirm lets a person see an approval before deciding about it: on a terminal it
// shows the approval and asks. Elsewhere it refuses any but the one that was shown
// last: what the command line names may come from the agent.
func (a *app) confirm(ctx context.Context, r approval.Record, question string) error {
	if !isTerminal(a.stdin) || !isTerminal(a.stderr) {
		if a.wasShown(r) {
			return nil
		}
		return &hintError{
			fmt.Errorf("approval %s is not the last one that you were shown, so nothing was decided", r.ID),
			a.command("approvals show "+r.ID) + ", then the same command again",
		}
	}
	if err := discardInput(a.stdin); err != nil {
		return fmt.Errorf("discard what was typed before the question: %w", err)
	}
	if _, err := fmt.Fprintf(a.stderr, "%s\n%s [y/N] ", approval.Show(r).Text(a.columns()), question); err != nil {
		return err
	}
	answer, err := readLine(ctx, a.stdin)
	if err != nil {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return fmt.Errorf("%w: approval %s stays open", errUndecided, r.ID)
	}
	return nil
}

// maxTyped bounds a line that a person types, in bytes, and pollTerminal is how
// often the end of the command is looked for meanwhile, in milliseconds.
const (
	maxTyped     = 4096
	pollTerminal = 100
)

// readLine returns the next line from a terminal, or the cause of ctx's end.
func readLine(ctx context.Context, terminal *os.File) (string, error) {
	for ctx.Err() == nil {
		ready := []unix.PollFd{{Fd: int32(terminal.Fd()), Events: unix.POLLIN}}
		switch n, err := unix.Poll(ready, pollTerminal); {
		case errors.Is(err, unix.EINTR) || err == nil && n == 0:
			continue
		case err != nil:
			return "", fmt.Errorf("read the answer: %w", err)
		}
		line := make([]byte, maxTyped) // a terminal gives a line at a time
		n, err := terminal.Read(line)
		if n == 0 && err != nil {
			return "", fmt.Errorf("%w: there is no answer", errUndecided)
		}
		return string(line[:n]), nil
	}
	return "", context.Cause(ctx)
}

// approveQuestion asks what the flags of approve say.
func approveQuestion(flags *pflag.FlagSet, grants bool) string {
	if !grants {
		return "Let this call run, once?"
	}
	var terms []string
	flags.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "always", "session", "plugin":
			terms = append(terms, "--"+f.Name)
		case "for", "uses", "path":
			terms = append(terms, "--"+f.Name+" "+shellQuoted(f.Value.String()))
		case "command":
			terms = append(terms, "--command "+line(f.Value.String()))
		}
	})
	return fmt.Sprintf("Let this call run, and later calls without asking (%s)?", strings.Join(terms, " "))
}
