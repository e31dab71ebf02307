package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/event"
)

func (a *app) eventsCommand() *cobra.Command {
	var types []string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what happens, as it happens",
		Long: `Print the events of the host as they happen, until Ctrl-C: calls, approvals, progress,
results and plugins. With --json, each line is an object with id, event and data. When the
host ends, the command waits for the next one and continues where it was; the lines
"connected" and "disconnected" tell so.`,
		Example: `  toolhost events
  toolhost events --json --types tool.approval,tool.result`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kinds := make([]event.Kind, len(types))
			for i, name := range types {
				if kinds[i] = event.Kind(name); !slices.Contains(event.Kinds(), kinds[i]) {
					return &usageError{fmt.Errorf("--types: there are no events %q; there are %s", name, strings.Join(kindNames(), ", "))}
				}
			}
			return a.printEvents(cmd.Context(), kinds)
		},
	}
	cmd.Flags().StringSliceVar(&types, "types", nil, "print only events of these types, separated by commas")
	a.completeFlag(cmd, "types", oneOfNames(kindNames()...))
	return cmd
}

// kindNames returns the names of all types of events.
func kindNames() (names []string) {
	for _, kind := range event.Kinds() {
		names = append(names, string(kind))
	}
	return names
}

// What the command tells of itself, as events without an id.
const (
	streamBegan event.Kind = "connected"
	streamEnded event.Kind = "disconnected"
)

// printEvents prints the events of one host after the other until ctx ends.
func (a *app) printEvents(ctx context.Context, kinds []event.Kind) error {
	stateDir, _, err := a.running(ctx)
	if err != nil {
		return err
	}
	after := "" // the last position; a host that knows it no longer sends a gap
	err = a.eachHost(ctx, stateDir, func() (reached bool, err error) {
		c, err := a.approverClient(stateDir)
		if err != nil {
			return false, err
		}
		defer c.Close()
		for e, err := range c.Events(ctx, after, kinds...) {
			if err != nil {
				return reached, endOfStream(err)
			}
			if !reached {
				reached = true
				if err := a.printEvent(client.Event{Kind: streamBegan}); err != nil {
					return true, err
				}
			}
			after = e.ID
			if e.Kind == "" { // a sign of life
				continue
			}
			if err := a.printEvent(e); err != nil {
				return true, err
			}
		}
		return reached, nil
	}, func(reason error) error {
		data, err := json.Marshal(map[string]string{"reason": line(reason.Error())})
		if err != nil {
			return err
		}
		return a.printEvent(client.Event{Kind: streamEnded, Data: data})
	})
	return a.remoteError(err)
}

// maxPrinted bounds the data of an event in text, in characters.
const maxPrinted = 400

// printEvent prints an event on one line.
func (a *app) printEvent(e client.Event) error {
	if a.json {
		return a.printJSONLine(struct {
			ID   string          `json:"id,omitempty"`
			Kind event.Kind      `json:"event"`
			Data json.RawMessage `json:"data,omitempty"`
		}{e.ID, e.Kind, e.Data})
	}
	_, err := fmt.Fprintln(a.stdout, strings.TrimSpace(line(string(e.Kind))+" "+head(line(string(e.Data)), maxPrinted)))
	return err
}
