package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// journalDiagnosis is what doctor says of a journal.
type journalDiagnosis struct {
	// State is what is known of it; "" if there is no telling.
	State journal.Integrity `json:"state,omitempty"`
	// Problem says what is wrong, or why there is no telling.
	Problem string `json:"problem,omitempty"`

	lost bool // a host runs that cannot record calls
}

// wrong reports whether the journal was changed, or calls cannot be recorded.
func (d *journalDiagnosis) wrong() bool {
	return d != nil && (d.State == journal.Changed || d.lost)
}

// diagnoseJournal asks the host that runs, or looks itself. It returns nil if no
// configuration names a state directory with a journal, and makes none.
func (a *app) diagnoseJournal(ctx context.Context) *journalDiagnosis {
	stateDir, err := a.stateDir()
	if err != nil {
		return nil // which doctor says of the configuration
	}
	if _, err := os.Stat(filepath.Join(stateDir, daemon.Database)); err != nil {
		if answers(ctx, stateDir) {
			return &journalDiagnosis{Problem: "the database is missing while a host runs: stop the host and restore the database", lost: true}
		}
		return nil
	}
	if answers(ctx, stateDir) {
		return askJournal(ctx, stateDir)
	}
	report, err := daemon.VerifyJournal(ctx, stateDir)
	switch {
	case err != nil:
		return &journalDiagnosis{Problem: err.Error()}
	case len(report.Problems) > 0:
		return &journalDiagnosis{State: journal.Changed, Problem: report.Problems[0].String()}
	}
	return &journalDiagnosis{State: journal.Verified}
}

// askJournal asks the host that runs.
func askJournal(ctx context.Context, stateDir string) *journalDiagnosis {
	c, err := client.New(client.Options{StateDir: stateDir, Name: "toolhost", Session: "cli"})
	if err != nil {
		return &journalDiagnosis{Problem: err.Error()}
	}
	defer c.Close()
	health, err := c.Health(ctx)
	if err != nil {
		return &journalDiagnosis{Problem: err.Error()}
	}
	d := &journalDiagnosis{State: health.Journal}
	if len(health.Problems) > 0 {
		d.Problem, d.lost = health.Problems[0], true
	}
	return d
}

func printJournal(w io.Writer, d *journalDiagnosis) error {
	if d == nil {
		return nil
	}
	text := map[journal.Integrity]string{
		journal.Verified: "unchanged", journal.Verifying: "being checked",
		journal.NewestVerified: "the newest rows are unchanged", journal.Changed: "changed",
		"": "not known",
	}[d.State]
	if d.Problem != "" {
		text += ": " + line(d.Problem)
	}
	_, err := fmt.Fprintf(w, "\njournal: %s\n", text)
	return err
}
