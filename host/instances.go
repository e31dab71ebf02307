package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// maxOwners bounds the processes that a list of plugins shows.
const maxOwners = 50

// printOwners prints the processes of users and sessions, by their owners.
func (a *app) printOwners(views []httpapi.Plugin) error {
	type owned struct {
		supervisor.Instance

		plugin string
	}
	var all []owned
	for _, v := range views {
		for _, i := range v.Instances {
			all = append(all, owned{i, v.Name})
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(x, y owned) int {
		return cmp.Or(cmp.Compare(x.User, y.User), cmp.Compare(x.Session, y.Session))
	})
	fmt.Fprintln(a.stdout)
	table := newTable(a.stdout)
	fmt.Fprint(table, "USER\tSESSION\tPLUGIN\tPHASE\tPROCESS\tCALLS\n")
	for _, o := range all[:min(len(all), maxOwners)] {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\n", orDash(head(line(o.User), maxOwner)), orDash(head(line(o.Session), maxOwner)), o.plugin, o.Phase, processOf(o.Instance), o.Calls)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if more := len(all) - maxOwners; more > 0 {
		fmt.Fprintf(a.stdout, "%d more: %s\n", more, a.command("plugins list --json"))
	}
	return nil
}

// processOf returns the id of the process of an instance, or a dash, and says if it is a reader.
func processOf(i supervisor.Instance) string {
	text := "-"
	if i.PID != 0 {
		text = fmt.Sprint(i.PID)
	}
	if i.Reader {
		text += " (reader)"
	}
	return text
}

// countInstances says how many processes the users or sessions of a plugin have.
func countInstances(s supervisor.State) string {
	running, crashed, unstarted := 0, 0, 0
	for _, i := range s.Instances {
		if i.PID != 0 {
			running++
		}
		switch {
		case i.RetryAt.IsZero():
		case i.LastCrash != nil && i.LastCrash.During == supervisor.BeforeStart:
			unstarted++
		default:
			crashed++
		}
	}
	each := "one"
	if s.SplitTiers {
		each = "one and a reader"
	}
	text := fmt.Sprintf("%d, %s for each %s", running, each, s.Scope)
	if crashed > 0 {
		text += fmt.Sprintf("; %d more crashed and are not started again yet", crashed)
	}
	if unstarted > 0 {
		text += fmt.Sprintf("; %d more could not be started and are not tried again yet", unstarted)
	}
	return text
}

// printInstances prints the processes of users or sessions.
func (a *app) printInstances(instances []supervisor.Instance) error {
	table := newTable(a.stdout)
	fmt.Fprint(table, "USER\tSESSION\tPHASE\tPROCESS\tCALLS\tCRASHES\tNEXT START\n")
	for _, i := range instances {
		next := "-"
		if !i.RetryAt.IsZero() {
			next = i.RetryAt.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%s\n", orDash(head(line(i.User), maxOwner)), orDash(head(line(i.Session), maxOwner)), i.Phase, processOf(i), i.Calls, i.Crashes, next)
	}
	return table.Flush()
}
