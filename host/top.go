package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/event"
)

func (a *app) topCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "top",
		Short: "Show waiting calls, running calls and plugins on a full screen",
		Long: `Show the calls that wait, those that run, the plugins and the newest events on a full
screen, as they change. Enter opens the selected call: y lets it run, n rejects it with a
message, a lets it run and later calls unasked. c cancels a call that runs. Ctrl-C ends it.

For questions one after the other, between other output: toolhost approvals watch.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			screen, ok := a.stdout.(*os.File)
			if !ok || !isTerminal(a.stdin) || !isTerminal(a.stdout) || a.json {
				return &usageError{&hintError{
					errors.New("top needs a terminal for its input and output"),
					a.command("events --json") + " is for programs",
				}}
			}
			return a.top(cmd.Context(), screen)
		},
	}
}

// top shows the screen until the person or ctx ends it.
func (a *app) top(ctx context.Context, screen *os.File) error {
	stateDir, _, err := a.running(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	model := &topModel{ctx: ctx, app: a, absent: "looking for a host", progress: map[string]string{}}
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(a.stdin), tea.WithOutput(screen), tea.WithoutSignalHandler())
	followed := make(chan error, 1)
	go func() { // ends with stop
		err := a.followForTop(ctx, stateDir, program)
		if ctx.Err() == nil { // no other host would mend it
			program.Quit()
		}
		followed <- err
	}()
	_, err = program.Run()
	stop()
	ended := <-followed
	if errors.Is(err, context.Canceled) || errors.Is(err, tea.ErrProgramKilled) { // Ctrl-C, or the terminal is gone
		err = nil
	}
	return a.remoteError(cmp.Or(ended, err))
}

// What the screen is told.
type (
	topHost   struct{ c *client.Client } // a host answers, through this client
	topAbsent struct{ reason string }
	topEvent  struct{ client.Event }
)

// followForTop tells a screen about one host after the other until ctx ends.
func (a *app) followForTop(ctx context.Context, stateDir string, program *tea.Program) error {
	return a.eachHost(ctx, stateDir, func() (reached bool, err error) {
		c, err := a.approverClient(stateDir)
		if err != nil {
			return false, err
		}
		defer c.Close()
		for e, err := range c.Events(ctx, "") {
			if err != nil {
				return reached, endOfStream(err)
			}
			if !reached {
				reached = true
				program.Send(topHost{c})
			}
			if e.Kind != "" { // no mere sign of life
				program.Send(topEvent{e})
			}
		}
		return reached, nil
	}, func(reason error) error {
		program.Send(topAbsent{line(reason.Error())})
		return nil
	})
}

// topNews is what the host tells of itself at one time.
type topNews struct {
	open    []approval.Record
	calls   []topCall
	plugins []topPlugin
	err     error
}

type topCall struct{ id, tool, user, state string }

type topPlugin struct {
	name, phase    string
	calls, crashes int
}

// fetch asks a host what the screen shows. It runs beside the program's loop. A token that may not see the calls or plugins of
// others leaves them out.
func fetch(ctx context.Context, c *client.Client) tea.Msg {
	var news topNews
	open, err := c.Approvals(ctx, client.ApprovalFilter{States: []approval.State{approval.Open}, Limit: maxListed})
	if err != nil {
		return topNews{err: err}
	}
	for _, r := range slices.Backward(open) { // the oldest first
		news.open = append(news.open, r.Record)
	}
	if calls, err := c.Calls(ctx); err == nil {
		for _, call := range calls {
			if call.State == operation.Done { // its result waits for its caller
				continue
			}
			news.calls = append(news.calls, topCall{call.ID, call.Tool, call.User, string(call.State)})
		}
	}
	if plugins, err := c.Plugins(ctx); err == nil {
		for _, p := range plugins {
			news.plugins = append(news.plugins, topPlugin{p.Name, p.Phase.String(), p.Calls, p.Crashes})
		}
	}
	return news
}

// about returns a line about an event.
func about(e client.Event) string {
	return line(string(e.Kind)) + " " + head(line(string(e.Data)), maxPrinted)
}

// changesLists reports whether an event may change what [fetch] returns.
func changesLists(kind event.Kind) bool {
	return kind != event.KindToolProgress && kind != event.KindFileChanged
}
