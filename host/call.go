package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxStdin bounds arguments from standard input. The pipeline has a lower bound.
const maxStdin = 8 << 20

func (a *app) callCommand() *cobra.Command {
	var about, key string
	cmd := &cobra.Command{
		Use:   "call TOOL [KEY=VALUE... | JSON | -]",
		Short: "Call one tool and print its result",
		Long: `Call one tool and print its result. Arguments are KEY=VALUE pairs, one JSON
object, or - for JSON on standard input. Each value takes the type that the tool
expects: n=5 is a number if the tool expects a number. Every account of the machine
can read a command line: the command overwrites its arguments as soon as it has read
them. Pass secrets with -.

A call that needs approval waits and prints how to approve it.`,
		Example: `  toolhost call TOOL path=README.md
  toolhost call TOOL '{"pattern": "func", "globs": ["*.go"]}'`,
		Args:              a.namesATool,
		ValidArgsFunction: a.completeCall,
		RunE: func(cmd *cobra.Command, args []string) error {
			arguments, err := a.arguments(args[1:])
			if err != nil {
				return wrongArguments(err)
			}
			hideArguments(args[1:])
			a.logLevel = cmp.Or(a.logLevel, "error") // a result leaves out details that the log shows
			return a.call(cmd.Context(), client.Call{Tool: args[0], Arguments: arguments, Context: about, IdempotencyKey: key})
		},
	}
	cmd.Flags().StringVar(&about, "context", "", "why the call is made, for the approver")
	cmd.Flags().StringVar(&key, "idempotency-key", "", "run the call at most once for this key")
	return cmd
}

// namesATool requires the name of a tool.
func (a *app) namesATool(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return &hintError{errors.New("expected the name of a tool"), a.command("tools") + " lists them"}
	}
	return nil
}

// arguments reads the arguments of a call from the command line.
func (a *app) arguments(args []string) ([]byte, error) {
	if len(args) == 1 && args[0] == "-" {
		data, err := io.ReadAll(io.LimitReader(a.stdin, maxStdin+1))
		switch {
		case err != nil:
			return nil, fmt.Errorf("read arguments from standard input: %w", err)
		case len(data) > maxStdin:
			return nil, fmt.Errorf("the arguments on standard input are longer than %d bytes", maxStdin)
		}
		return readable(data)
	}
	if len(args) == 1 && isJSON(args[0]) {
		return readable([]byte(args[0]))
	}
	pairs := map[string]string{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is not KEY=VALUE; give pairs, one JSON object, or - for standard input", arg)
		}
		if _, twice := pairs[key]; twice {
			return nil, fmt.Errorf("argument %q is given twice; give a list as one JSON object", key)
		}
		pairs[key] = value
	}
	return json.Marshal(pairs)
}

// wrongArguments returns a usage error, unless a model could make the same mistake.
func wrongArguments(err error) error {
	if _, ok := errors.AsType[*tool.Error](err); ok {
		return err
	}
	return &usageError{err}
}

// readable returns arguments that are JSON. For others, the error gives the place of the
// mistake.
func readable(arguments []byte) ([]byte, error) {
	if _, err := schema.Read(arguments); err != nil {
		return nil, err
	}
	return arguments, nil
}

// isJSON reports whether an argument is JSON: an object, or a string for a tool whose
// arguments are a single string.
func isJSON(arg string) bool {
	arg = strings.TrimSpace(arg)
	return strings.HasPrefix(arg, "{") || strings.HasPrefix(arg, `"`)
}

// call runs one call and prints its outcome.
func (a *app) call(ctx context.Context, call client.Call) error {
	w, err := a.await(ctx, call)
	if err != nil {
		return err
	}
	outcome := w.outcome
	if a.json {
		if err := a.printJSON(outcome); err != nil {
			return err
		}
	} else if err := a.printResult(outcome.Result); err != nil {
		return err
	}
	failure := outcome.Failure()
	switch {
	case failure == nil:
		return nil
	case a.json:
		return errReported
	case failure.Code == tool.NotFound && w.unknown:
		a.printProblems(ctx)
		if !strings.HasPrefix(failure.Hint, "did you mean") {
			return failure.WithHint("%s lists the tools", a.command("tools"))
		}
	case failure.Code == tool.Rejected && failure.Message == pipeline.RejectedByUser && failure.Hint != "": // what the person said
		return tool.Errorf(tool.Rejected, "%s: %s", failure.Message, failure.Hint)
	case failure.Code == tool.Unavailable && failure.Hint == "":
		return failure.WithHint("%s shows why its plugin does not run", a.command("plugins list"))
	case outcome.Record != nil && failure.Hint == "":
		return failure.WithHint("%s shows its record", a.command("journal query --call "+outcome.ToolCallID))
	}
	return failure
}

// showProgress shows the progress of calls on a terminal until stop is called.
func (a *app) showProgress(ctx context.Context, c *client.Client) (stop func()) {
	if !isTerminal(a.stderr) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var showing sync.WaitGroup
	showing.Go(func() { // ends with cancel
		for e, err := range c.Events(ctx, "", event.KindToolProgress) {
			var p event.ToolProgress
			if err != nil || json.Unmarshal(e.Data, &p) != nil {
				return
			}
			fmt.Fprintf(a.stderr, "\r\x1b[K%s", progressLine(p.Progress))
		}
	})
	return func() {
		cancel()
		showing.Wait()
		fmt.Fprint(a.stderr, "\r\x1b[K")
	}
}

// printResult prints a result for people.
func (a *app) printResult(r *client.Result) error {
	if r == nil {
		return nil
	}
	texts := []string{}
	if r.Content != "" {
		texts = append(texts, r.Content)
	}
	if isTerminal(a.stdout) && r.Content != "" {
		texts[0] = tool.Visible(r.Content)
	}
	for _, part := range r.Parts {
		if part.URI != "" && len(part.Data) == 0 {
			texts = append(texts, line(part.URI))
			continue
		}
		texts = append(texts, fmt.Sprintf("[%s, %d bytes; --json shows them]", line(part.MediaType), len(part.Data)))
	}
	for _, text := range texts {
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := io.WriteString(a.stdout, text); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	}
	if r.Structured != nil && len(texts) == 0 {
		return a.printJSON(r.Structured)
	}
	return nil
}

func progressLine(p tool.Progress) string {
	switch {
	case p.Total > 0:
		return fmt.Sprintf("%3.0f%% %s", 100*p.Progress/p.Total, line(p.Message))
	case p.Message != "":
		return line(p.Message)
	}
	return fmt.Sprintf("%g", p.Progress)
}

// waiting waits for a call, however long a person takes to decide, and however often the host
// changes in the meantime: a command in another terminal may be the host while it runs. The
// call's idempotency key ensures that it takes effect only once, even if several hosts receive
// it.
type waiting struct {
	app  *app
	call client.Call

	outcome client.Outcome // the last known outcome
	unknown bool           // the tool does not exist
	told    string         // the approval that the person at the terminal has seen
}

const (
	// onePoll is how long one request for an outcome waits. A new approval appears on the
	// terminal after at most that time.
	onePoll = 2 * time.Second
	// maxHosts bounds how many hosts one call is sent to.
	maxHosts = 10
)

// await makes a call and waits for its end.
func (a *app) await(ctx context.Context, call client.Call) (*waiting, error) {
	if call.IdempotencyKey == "" {
		call.IdempotencyKey = "cli-" + rand.Text()
	}
	call.Asks = true // to report an approval on the terminal
	w := &waiting{app: a, call: call}
	var err error
	for lost := 0; lost < maxHosts; {
		begun := w.outcome.ToolCallID != ""
		err = a.asAgent(ctx, func(c *client.Client) error { return w.wait(ctx, c) })
		if _, ok := errors.AsType[*config.Error](err); ok && begun {
			w.tellStranded()
		}
		if err == nil && w.ended() || err != nil && !hostGone(err) || pause(ctx, betweenHosts) != nil {
			break
		}
		if err != nil || !w.turnedAway() { // a stopping host refuses every time
			lost++
		}
	}
	if err == nil && w.outcome.Status == client.Pending {
		err = errors.New("the call was canceled but has not ended yet")
	}
	return w, err
}

// wait makes the call, or finds the earlier one, and waits for its end. The end of ctx cancels
// the call.
func (w *waiting) wait(ctx context.Context, c *client.Client) error {
	defer w.app.showProgress(ctx, c)()
	var err error
	w.outcome, err = c.Call(ctx, w.call)
	for err == nil && w.outcome.Status == client.Pending {
		w.tell()
		var next client.Outcome
		switch next, err = c.Outcome(ctx, w.outcome.ToolCallID, onePoll); {
		case err == nil:
			w.outcome = next
		case isStatus(err, http.StatusNotFound): // a new host that does not know the call
			err = client.ErrNoHost
		}
	}
	if ctx.Err() != nil && w.outcome.ToolCallID != "" {
		w.outcome, err = c.Cancel(context.WithoutCancel(ctx), w.outcome.ToolCallID)
	}
	if failure := w.outcome.Failure(); err == nil && failure != nil && failure.Code == tool.NotFound {
		_, lookup := c.Tool(ctx, w.call.Tool)
		w.unknown = lookup != nil
	}
	return err
}

// tell prints what the call waits for, once.
func (w *waiting) tell() {
	id := w.outcome.ApprovalID
	if id == "" || id == w.told {
		return
	}
	news := "the call waits for approval"
	if w.told != "" {
		news = "the call waits for another approval"
	}
	w.told = id
	fmt.Fprintf(w.app.stderr, "toolhost: %s\nhint: %s\nhint: %s\n",
		news, w.app.command("approvals show "+id), w.app.command("approvals approve "+id))
}

// tellStranded prints that the call's host is gone and that no other can start because the
// configuration now has mistakes. The caller reports the mistakes.
func (w *waiting) tellStranded() {
	what := "its outcome is unknown"
	if w.turnedAway() || w.outcome.Status == client.Pending && w.outcome.ApprovalID != "" {
		what = "it did not run"
	}
	again := fmt.Sprintf("call %s --idempotency-key %s", w.call.Tool, w.call.IdempotencyKey)
	fmt.Fprintf(w.app.stderr, "toolhost: the host stopped while the call %s waited, and no other can start with this configuration: %s\nhint: fix the mistakes below, then repeat the call with its arguments: %s\n",
		w.outcome.ToolCallID, what, w.app.command(again))
}

// ended reports whether the call has ended. A call that a stopping host refused goes to the
// next host.
func (w *waiting) ended() bool { return w.outcome.Status != client.Pending && !w.turnedAway() }

// turnedAway reports whether a stopping host refused the call.
func (w *waiting) turnedAway() bool {
	failure := w.outcome.Failure()
	return failure != nil && failure.Code == tool.Unavailable && strings.HasPrefix(failure.Message, operation.Stopping)
}

// hostGone reports whether an error means that the host is gone or stopping.
func hostGone(err error) bool {
	return isStatus(err, http.StatusServiceUnavailable) || errors.Is(err, client.ErrNoHost) || errors.Is(err, client.ErrBroken)
}

// isStatus reports whether an error is an answer with a status.
func isStatus(err error, status int) bool {
	problem, ok := errors.AsType[*httpapi.Problem](err)
	return ok && problem.Status == status
}

// hideArguments overwrites arguments in the memory of the command line, which every account
// can read: an argument may be a secret. It overwrites no other strings. The arguments must
// not be used afterwards.
func hideArguments(args []string) {
	for _, own := range os.Args {
		if own != "" && slices.ContainsFunc(args, func(arg string) bool { return memoryOf(arg) == memoryOf(own) }) {
			clear(unsafe.Slice(memoryOf(own), len(own))) //nolint:gosec // the runtime does not copy the command line
		}
	}
}

// memoryOf returns the address of a string's text.
func memoryOf(s string) *byte { return unsafe.StringData(s) } //nolint:gosec // it is only compared, and overwritten in the command line
