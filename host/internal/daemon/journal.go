package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

// endUnfinished records the end of calls that were running when the last host was killed. Their
// effect is unknown, and they are not repeated.
func (d *Daemon) endUnfinished(ctx context.Context) error {
	left, err := d.parts.journal.Unfinished(ctx)
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	for _, start := range left {
		end := journal.Record{
			Call: start.Call, Tool: start.Tool, Plugin: start.Plugin, Digest: start.Digest, Tier: start.Tier,
			User: start.User, Client: start.Client, Session: start.Session, Arguments: start.Arguments, ArgumentsHash: start.ArgumentsHash,
			Verdict: start.Verdict, Rule: start.Rule, Where: start.Where, ApprovedBy: start.ApprovedBy, Approval: start.Approval, Approver: start.Approver, Via: start.Via,
			Status: "error", Code: string(tool.UnknownOutcome), Error: "the host stopped during the call",
		}
		if err := d.parts.journal.End(ctx, end, true); err != nil {
			return fmt.Errorf("record the end of calls of the last host: %w", err)
		}
		d.opts.Logger.Warn("the last host stopped during a call: its outcome is unknown", "call", start.Call, "tool", start.Tool, "user", start.User)
	}
	return nil
}

// Database is the name of the database in a state directory.
const Database = store.FileName

// VerifyJournal checks the journal in a state directory that no host holds. It changes
// nothing.
func VerifyJournal(ctx context.Context, stateDir string) (report journal.Report, err error) {
	lock, err := store.Lock(stateDir)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	s, err := store.Open(ctx, store.Options{Dir: stateDir})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return journal.Verify(ctx, journal.Options{Store: s, KeyPath: journalKey(stateDir)})
}

// journalKey returns the path of the key that authenticates the journal.
func journalKey(stateDir string) string { return filepath.Join(stateDir, "keys", "journal.key") }
