package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// diagnosis is what `toolhost doctor --json` prints.
type diagnosis struct {
	// OK is set if the machine has everything that the configuration requires.
	OK bool `json:"ok"`
	daemon.Examination
	// Files and Mistakes belong to the configuration, if there is one.
	Files    []string         `json:"files,omitempty"`
	Mistakes []config.Mistake `json:"mistakes"`
	// Warnings are settings that are valid but probably not intended.
	Warnings []string `json:"warnings,omitempty"`
	// Journal is the journal in the configured state directory, if there is one.
	Journal *journalDiagnosis `json:"journal,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Report what this machine can enforce, and how to get more",
		Long: `Report which isolation levels this machine can enforce, and how to get more. The
command tries each level as the current user; a host that runs as another user may
get more or less.

With a configuration, it also reports what each plugin would get. It starts no plugin
and needs no running host. The exit code is 1 if the configuration requires something
that this machine lacks, or if the journal was changed.`,
		Example: `  toolhost doctor
  toolhost doctor --config /etc/toolhost
  toolhost doctor --json | jq .machine.strongest`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

func (a *app) doctor(ctx context.Context) error {
	cfg, wrong := a.loadConfig()
	none := errors.Is(wrong, config.ErrNone)
	if none {
		wrong = nil
	}
	found := a.diagnoseJournal(ctx)
	examination, err := daemon.Examine(ctx, cfg)
	if err != nil {
		return err
	}
	d := diagnosis{OK: wrong == nil && !found.wrong(), Examination: examination, Mistakes: []config.Mistake{}, Journal: found}
	for _, p := range d.Plugins {
		d.OK = d.OK && p.Starts
	}
	if cfg != nil {
		d.Files = cfg.Files
		if d.Warnings, err = daemon.Warnings(cfg, version); err != nil {
			return err
		}
		notes, err := a.lockNotes(cfg)
		if err != nil {
			return err
		}
		d.Warnings = append(d.Warnings, notes...)
		if text := a.othersText(cfg.StateDir); text != "" {
			d.Warnings = append(d.Warnings, text)
		}
		if left, ok := movedFrom(cfg); ok {
			d.Warnings = append(d.Warnings, "the state directory is new: "+movedText(left)+"; "+movedHint(left))
		}
		if warning := daemon.UntoldAccounts(cfg, auth.CheckOrigins()); warning != "" {
			d.Warnings = append(d.Warnings, warning)
		}
	}
	if mistakes, ok := errors.AsType[*config.Error](wrong); ok && a.json {
		d.Mistakes, wrong = mistakes.Mistakes, errReported
	}
	if a.json {
		err = a.printJSON(d)
	} else {
		err = a.printDiagnosis(d)
		if none && err == nil {
			_, err = fmt.Fprint(a.stdout, "\nno configuration found; with --config PATH, doctor also checks each plugin\n")
		}
	}
	switch {
	case err != nil || wrong != nil:
		return errors.Join(err, wrong)
	case !d.OK:
		return errReported
	}
	return nil
}

func (a *app) printDiagnosis(d diagnosis) error {
	return errors.Join(printMachine(a.stdout, d.Machine), printLevels(a.stdout, d.Machine), printExamined(a.stdout, d), printJournal(a.stdout, d.Journal))
}

// printMachine prints the properties of the machine that layers depend on.
func printMachine(w io.Writer, m sandbox.Machine) error {
	table := newTable(w)
	fmt.Fprintf(table, "system\t%s %s (%s)\n", m.System, line(m.Kernel), m.Arch)
	user := "root"
	if m.UID != 0 {
		user = fmt.Sprintf("an ordinary user (uid %d)", m.UID)
	}
	fmt.Fprintf(table, "user\t%s\n", user)
	landlock := fmt.Sprintf("version %d", m.Landlock)
	if m.Landlock == 0 {
		landlock = "none"
	}
	fmt.Fprintf(table, "landlock\t%s\n", landlock)
	for _, row := range []struct {
		name  string
		layer sandbox.Layer
	}{{"user namespaces", sandbox.LayerUserNS}, {"cgroups", sandbox.LayerCgroup}} {
		if answer := has(m.Auto.Sandbox, row.layer); answer != "" {
			fmt.Fprintf(table, "%s\t%s\n", row.name, answer)
		}
	}
	return table.Flush()
}

// has returns whether a layer is in force and what it lacks, or "" if the report does not
// mention it.
func has(r sandbox.Report, layer sandbox.Layer) string {
	answer := ""
	if slices.ContainsFunc(r.Layers, func(text string) bool {
		rest, found := strings.CutPrefix(text, string(layer))
		return found && (rest == "" || strings.ContainsAny(rest[:1], " :=("))
	}) {
		answer = "yes"
	}
	for _, gap := range r.Missing {
		switch {
		case gap.Layer != layer:
		case answer == "":
			answer = "no: " + line(gap.Reason)
		default:
			answer += ", but " + line(gap.Reason)
		}
	}
	return answer
}

// printLevels prints what each level adds to the previous one, and then everything that is
// missing.
func printLevels(w io.Writer, m sandbox.Machine) error {
	fmt.Fprintln(w)
	table := newTable(w)
	fmt.Fprint(table, "LEVEL\tWORKS\tIN FORCE\n")
	var before []string
	for _, level := range m.Levels {
		fmt.Fprintf(table, "%s\t%s\t%s\n", level.Isolation, yesNo(level.Works), addedTo(before, level))
		before = level.Sandbox.Layers
	}
	if err := table.Flush(); err != nil {
		return err
	}
	auto := fmt.Sprintf("auto, the default, gives %s here", m.Strongest)
	if more := without(m.Auto.Sandbox.Layers, m.Levels[m.Strongest-sandbox.Off].Sandbox.Layers); len(more) > 0 {
		auto += ", and also " + strings.Join(more, ", ")
	}
	fmt.Fprintf(w, "\n%s\n", auto)
	return printMissing(w, append(slices.Clone(m.Levels), m.Auto))
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// addedTo returns the layers that a level adds to the previous one.
func addedTo(before []string, level sandbox.Level) string {
	if level.Problem != "" {
		return line(level.Problem)
	}
	added := without(level.Sandbox.Layers, before)
	switch {
	case len(before) == 0:
		return strings.Join(added, ", ")
	case len(added) == 0:
		return "the same"
	}
	return "and " + strings.Join(added, ", ")
}

// without returns the elements of all that some does not contain.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(text string) bool { return slices.Contains(some, text) })
}

// lack is a reason that layers are missing in several levels.
type lack struct {
	reason, remedy string
	layers, levels []string
}

// printMissing prints each reason and each remedy once.
func printMissing(w io.Writer, levels []sandbox.Level) error {
	var lacks []*lack
	for _, level := range levels {
		for _, gap := range level.Sandbox.Missing {
			i := slices.IndexFunc(lacks, func(l *lack) bool { return l.reason == gap.Reason && l.remedy == gap.Remedy })
			if i < 0 {
				i = len(lacks)
				lacks = append(lacks, &lack{reason: gap.Reason, remedy: gap.Remedy})
			}
			lacks[i].layers = append(without(lacks[i].layers, []string{string(gap.Layer)}), string(gap.Layer))
			lacks[i].levels = append(without(lacks[i].levels, []string{level.Isolation.String()}), level.Isolation.String())
		}
	}
	if len(lacks) == 0 {
		_, err := fmt.Fprint(w, "nothing is missing\n")
		return err
	}
	fmt.Fprint(w, "\nmissing\n")
	var told []string
	for _, l := range lacks {
		fmt.Fprintf(w, "  %s, in %s: %s\n", strings.Join(l.layers, ", "), strings.Join(l.levels, ", "), line(l.reason))
		if l.remedy != "" && !slices.Contains(told, l.remedy) {
			told = append(told, l.remedy)
			fmt.Fprintf(w, "    remedy: %s\n", line(l.remedy))
		}
	}
	return nil
}

// printExamined prints the confinement of each configured plugin.
func printExamined(w io.Writer, d diagnosis) error {
	if len(d.Files) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n%s\n", strings.Join(d.Files, ", "))
	printWarnings(w, d.Warnings)
	if len(d.Plugins) == 0 {
		_, err := fmt.Fprint(w, "no plugins\n")
		return err
	}
	table := newTable(w)
	fmt.Fprint(table, "PLUGIN\tISOLATION\tSTARTS\tWHERE\n")
	for _, p := range d.Plugins {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.Name, p.Isolation, starts(p), p.Place)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return printFacts(w, d.Plugins)
}

// printFacts prints what is said of the plugins, each once with the plugins that it is true of.
func printFacts(w io.Writer, plugins []daemon.ExaminedPlugin) error {
	var texts []string
	names := map[string][]string{}
	say := func(p daemon.ExaminedPlugin, text string) {
		if len(names[text]) == 0 {
			texts = append(texts, text)
		}
		names[text] = append(names[text], p.Name)
	}
	problems := "\n"
	for _, p := range plugins {
		if p.Problem != "" {
			fmt.Fprintf(w, "%s%s: plugin %q: %s\n", problems, p.Place, p.Name, paragraph(p.Problem))
			problems = ""
		}
	}
	for _, facts := range []func(daemon.ExaminedPlugin){
		func(p daemon.ExaminedPlugin) {
			if p.Sandbox != nil {
				say(p, "sandbox: "+line(strings.Join(p.Sandbox.Layers, ", ")))
			}
			if p.Reader != nil {
				say(p, "reader, for read_only calls: "+line(strings.Join(p.Reader.Layers, ", ")))
			}
		},
		func(p daemon.ExaminedPlugin) {
			if p.Sandbox == nil {
				return
			}
			for _, text := range gapLines(*p.Sandbox) {
				say(p, "missing: "+text)
			}
		},
		func(p daemon.ExaminedPlugin) {
			if p.Sandbox == nil {
				return
			}
			if len(p.Protect) > 0 {
				say(p, "protect: "+strings.Join(p.Protect, ", ")+": what exists when it starts; the kernel does not protect what appears later")
			}
			if len(p.Forbidden) > 0 {
				say(p, "forbidden: hidden as found when it starts; "+daemon.NotHidden)
			}
			if len(p.Exposed) > 0 {
				say(p, "exposed: "+line(strings.Join(p.Exposed, ", "))+": it may write to their directories, and can change a file that is replaced while it runs; keep them elsewhere")
			}
		},
	} {
		texts = nil
		for _, p := range plugins {
			facts(p)
		}
		if len(texts) > 0 {
			fmt.Fprintln(w)
		}
		for _, text := range texts {
			fmt.Fprintf(w, "%s: %s\n", strings.Join(names[text], ", "), text)
		}
	}
	return nil
}

// starts returns whether a plugin starts, and the required layers that it lacks.
func starts(p daemon.ExaminedPlugin) string {
	if !p.Starts || p.Sandbox == nil {
		return yesNo(p.Starts)
	}
	var missing []string
	for _, gap := range p.Sandbox.Missing {
		if gap.Required {
			missing = append(missing, string(gap.Layer))
		}
	}
	if len(missing) == 0 {
		return "yes"
	}
	return "yes, without " + strings.Join(missing, ", ")
}

// journalDiagnosis is the result of doctor about a journal.
type journalDiagnosis struct {
	// State is the journal's integrity; "" if it is unknown.
	State journal.Integrity `json:"state,omitempty"`
	// Problem describes what is wrong, or why the state is unknown.
	Problem string `json:"problem,omitempty"`

	lost bool // the running host cannot record calls
}

// wrong reports whether the journal was changed or calls cannot be recorded.
func (d *journalDiagnosis) wrong() bool {
	return d != nil && (d.State == journal.Changed || d.lost)
}

// diagnoseJournal asks the running host, or verifies the journal itself. It returns nil if the
// configured state directory has no journal, and does not create one.
func (a *app) diagnoseJournal(ctx context.Context) *journalDiagnosis {
	stateDir, err := a.stateDir()
	if err != nil {
		return nil // doctor reports the mistakes in the configuration
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

// askJournal asks the running host.
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
