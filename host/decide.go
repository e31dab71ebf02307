package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// decide makes a decision that a person confirms, and prints the result.
func (a *app) decide(ctx context.Context, args []string, last, approves bool, question string, answer client.Answer) error {
	if err := checkSeen(args, answer); err != nil {
		return err
	}
	send := (*client.Client).Reject
	if approves {
		send = (*client.Client).Approve
	}
	return a.asDecider(ctx, func(c *client.Client) error {
		if answer.ArgumentsHash != "" { // a program has shown the call to a person; the host compares
			record, err := send(c, ctx, args[0], answer)
			if err != nil {
				return err
			}
			return a.printDecision(record)
		}
		id, err := a.chooseApproval(ctx, c, args, last, true)
		if err != nil {
			return err
		}
		whole, err := c.Approval(ctx, id)
		if err != nil {
			return err
		}
		if whole.State == approval.Open && !whole.MayNotDecide { // else the host's error says who has decided, or may
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
		return a.printDecision(record)
	})
}

// registerSeen adds the flags with which a program says what it has shown to a person.
func registerSeen(flags *pflag.FlagSet, answer *client.Answer) {
	flags.StringVar(&answer.ArgumentsHash, "arguments-hash", "", "for programs that show calls themselves: the hash of what the person saw; nothing is asked")
	flags.StringVar(&answer.PreviewDigest, "preview-digest", "", "with --arguments-hash: the digest of the preview that the person saw")
}

// checkSeen refuses flags of [registerSeen] that name no call or no version of it.
func checkSeen(args []string, answer client.Answer) error {
	switch {
	case answer.ArgumentsHash == "" && answer.PreviewDigest != "":
		return &usageError{errors.New("--preview-digest needs --arguments-hash")}
	case answer.ArgumentsHash != "" && len(args) == 0:
		return &usageError{errors.New("--arguments-hash needs the ID of the call that was shown")}
	}
	return nil
}

// printDecision prints a decision that the host has accepted, and the grants that it gave.
func (a *app) printDecision(record approval.Record) error {
	if a.json {
		return a.printJSON(record)
	}
	state := string(record.State)
	if record.State == approval.Open { // several people must approve it
		state = "approved by " + line(record.Progress()) + ":"
	}
	_, err := fmt.Fprintf(a.stdout, "%s %s: %s\n", state, record.ID, line(record.Summary))
	for _, g := range record.Grants {
		if err == nil {
			_, err = fmt.Fprintf(a.stdout, "granted to %s %s: %s\n", line(g.User), lasts(g), line(g.Covers))
			fmt.Fprintf(a.stderr, "hint: %s takes that back\n", a.command("grants revoke "+g.ID))
		}
	}
	return err
}

// chooseApproval returns the id of an approval: the given one, the newest one, or the only
// open one. To decide, it leaves out those that are for others to decide.
func (a *app) chooseApproval(ctx context.Context, c *client.Client, args []string, last, decides bool) (string, error) {
	switch {
	case len(args) == 1 && last:
		return "", &usageError{errors.New("give an ID or --last, not both")}
	case len(args) == 1:
		return args[0], nil
	}
	all, err := c.Approvals(ctx, client.ApprovalFilter{States: []approval.State{approval.Open}})
	open := slices.DeleteFunc(slices.Clone(all), func(r httpapi.Approval) bool { return decides && r.MayNotDecide })
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", errors.New(noneWaits)
	case len(open) == 0:
		return "", &hintError{errors.New("every call that waits is for others to decide"), a.command("approvals show "+all[0].ID) + " says who may"}
	case len(open) == 1 || last:
		return open[0].ID, nil
	}
	return "", &usageError{&hintError{fmt.Errorf("%d calls wait for approval: give an ID, or --last", len(open)), a.command("approvals list") + " shows them"}}
}

// shownFile is a file in the state directory that records which approval or paused grant this
// account viewed last. For a host on another machine, it is beside the logins.
const shownFile = "shown.json"

// shown identifies an approval or a grant and the version that was shown.
type shown struct {
	ID            string `json:"id"`
	ArgumentsHash string `json:"arguments_hash"`
	PreviewDigest string `json:"preview_digest"`
	Basis         string `json:"basis,omitempty"` // of a grant
}

func shownOf(r approval.Record) shown {
	return shown{ID: r.ID, ArgumentsHash: r.ArgumentsHash, PreviewDigest: r.PreviewDigest}
}

// noteShown records what was shown last.
func (a *app) noteShown(what shown) error {
	path, err := a.shownPath()
	if err != nil {
		return err
	}
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil { // of a host on another machine
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// wasShown reports whether an approval or a grant, in its current version, was shown last.
func (a *app) wasShown(what shown) bool {
	var last shown
	path, err := a.shownPath()
	if err != nil {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(text, &last) == nil && last == what
}

// shownPath returns the file that records what was shown, one for each host.
func (a *app) shownPath() (string, error) {
	if a.remote != "" {
		dir, err := loginsDir()
		return filepath.Join(dir, url.QueryEscape(a.remote)+"."+shownFile), err
	}
	stateDir, err := a.stateDir()
	return filepath.Join(stateDir, shownFile), err
}

// errUndecided ends a command whose user did not confirm.
var errUndecided = errors.New("nothing was decided")

// confirm makes sure that a person has seen an approval. On a terminal, it shows the approval
// and asks. Without a terminal, it accepts only the approval that was shown last, because an
// agent may have written the command line.
func (a *app) confirm(ctx context.Context, r approval.Record, question string) error {
	if !a.onTerminal() {
		if a.wasShown(shownOf(r)) {
			return nil
		}
		return &hintError{
			fmt.Errorf("look at approval %s first; nothing was decided", r.ID),
			a.command("approvals show "+r.ID) + " # then the same command again",
		}
	}
	return a.askYes(ctx, viewText(approval.Show(r), a.stderr), question, "approval "+r.ID+" stays open")
}

// onTerminal reports whether a person can answer questions here.
func (a *app) onTerminal() bool { return isTerminal(a.stdin) && isTerminal(a.stderr) }

// askYes shows a text on a terminal and asks a question. If the answer is not yes, the error
// says what remains unchanged.
func (a *app) askYes(ctx context.Context, text, question, stays string) error {
	if err := discardInput(a.stdin); err != nil {
		return fmt.Errorf("discard what was typed before the question: %w", err)
	}
	if _, err := fmt.Fprintf(a.stderr, "%s\n%s [y/N] ", text, question); err != nil {
		return err
	}
	answer, err := readLine(ctx, a.stdin, func() error { return nil })
	if err != nil {
		return err
	}
	if !isYes(answer) {
		return fmt.Errorf("%w: %s", errUndecided, stays)
	}
	return nil
}

func isYes(answer string) bool {
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// approveQuestion returns the question that approve asks with these flags.
func approveQuestion(flags *pflag.FlagSet, grants bool) string {
	if !grants {
		return "Let this call run once?"
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
	return fmt.Sprintf("Let this call run, and later calls unasked (%s)?", strings.Join(terms, " "))
}
