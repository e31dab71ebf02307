package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/shell"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// keysText explains the answers to the question about a call.
const keysText = `Answers, each followed by Enter:
  y            let the call run once
  n [MESSAGE]  reject it; the model reads the message
  a            let it run, and later calls unasked: the watch asks which
  d            show everything about the call
  s, or Enter  leave it waiting
`

const (
	// betweenQuestions is how long a question about a call waits after the one about another
	// call: what is typed meanwhile was meant for that one.
	betweenQuestions = time.Second
	// usualRows is the height of a terminal that does not tell, and leastRows the fewest rows
	// that a call gets.
	usualRows = 40
	leastRows = 16
	// otherRows are the rows beside those of the call.
	otherRows = 4
)

// show shows a call and asks the person about it. others is the number of other calls that wait.
func (w *watch) show(ctx context.Context, c *client.Client, news *feed, id string, others int) error {
	whole, err := c.Approval(ctx, id)
	refused, ok := errors.AsType[*httpapi.Problem](err)
	switch {
	case ok && !hostGone(err): // it is damaged, or gone since it was listed
		w.left[id] = true
		w.tell(refused.Detail)
		return nil
	case err != nil:
		return err
	case whole.State != approval.Open:
		return nil
	case w.terminal == nil, !inForeground(w.terminal.input):
		w.left[id] = true
		return w.print(whole)
	case whole.MayNotDecide:
		w.left[id] = true
		w.tell(fmt.Sprintf("%s waits for others to decide about %s, a call of %s: %s", id, whole.Tool, whole.User, whole.Approvers))
		return nil
	}
	err = w.ask(ctx, &question{watch: w, c: c, news: news, record: whole.Record, others: others})
	w.ended = time.Now()
	if closed, ok := errors.AsType[*closedError](err); ok {
		w.tell(closed.Error())
		return nil
	}
	return err
}

// print prints a call without a question.
func (w *watch) print(whole httpapi.Approval) error {
	switch {
	case w.app.json:
		return w.app.printJSONLine(whole)
	case w.terminal == nil:
		return w.app.printApproval(whole)
	}
	_, err := fmt.Fprintf(w.app.stderr, "toolhost: %s waits for approval: %s\nhint: %s\n",
		whole.Tool, line(whole.Summary), w.app.command("approvals approve "+whole.ID))
	return err
}

// closedError ends a question about a call that needs no answer any more.
type closedError struct{ record approval.Record }

func (e *closedError) Error() string {
	r := e.record
	switch r.State {
	case approval.Expired:
		return r.ID + " expired: no one decided in time"
	case approval.Canceled:
		return r.ID + " was canceled: its caller gave up"
	case approval.Approved, approval.Spent:
		return r.ID + " was approved by " + r.DecidedBy + " over " + r.Via
	case approval.Rejected:
		return r.ID + " was rejected by " + r.DecidedBy + " over " + r.Via
	case approval.Open:
	}
	return r.ID + " is " + string(r.State)
}

// question is the question about one call.
type question struct {
	watch  *watch
	c      *client.Client
	news   *feed
	record approval.Record
	others int
	seen   bool // the whole call was shown
	told   bool // the person knows that more calls wait than the card says
}

// ask shows a call and asks until the person has decided about it or leaves it waiting.
func (w *watch) ask(ctx context.Context, q *question) error {
	err := q.card()
	for err == nil {
		switch err = q.answer(ctx); {
		case err == nil:
			return nil
		case errors.Is(err, errAskAgain):
			err = nil
		case errors.Is(err, errResumed): // the shell has written below the card
			err = q.card()
		}
	}
	return err
}

// answer reads one answer and does what it says.
func (q *question) answer(ctx context.Context) error {
	w := q.watch
	answer, err := q.read(ctx, q.prompt())
	if err != nil {
		return err
	}
	verb, rest, _ := strings.Cut(answer, " ")
	switch verb = strings.ToLower(verb); {
	case verb == "" || (verb == "s" || verb == "skip") && rest == "":
		w.left[q.record.ID] = true
		return nil
	case verb == "n" || verb == "no":
		return q.decide(ctx, (*client.Client).Reject, client.Answer{Message: strings.TrimSpace(rest)})
	case rest != "":
		return q.explain(answer)
	case (verb == "y" || verb == "yes" || verb == "a" || verb == "always") && !q.seen:
		w.tell("not all of the call was shown; d shows it")
		return errAskAgain
	case verb == "y" || verb == "yes":
		return q.decide(ctx, (*client.Client).Approve, client.Answer{})
	case verb == "a" || verb == "always":
		return q.grant(ctx)
	case verb == "d" || verb == "?":
		return q.details()
	}
	return q.explain(answer)
}

// errAskAgain says that nothing was decided.
var errAskAgain = errors.New("nothing was decided yet")

// prompt returns the question.
func (q *question) prompt() string {
	if q.record.Standing {
		return "Let this call run? [y]es [n]o [a]lways [d]etails [s]kip: "
	}
	return "Let this call run once? [y]es [n]o [d]etails [s]kip: "
}

// card shows the call, as much as fits on the screen.
func (q *question) card() error {
	w := q.watch
	view := approval.Card(q.record)
	rows := strings.SplitAfter(strings.TrimSuffix(viewText(view, w.app.stderr), "\n"), "\n")
	fit := usualRows
	if height := w.terminal.rows(); height > 0 {
		fit = max(height-otherRows, leastRows)
	}
	q.seen = len(rows) <= fit
	text := fmt.Sprintf("\n%s waits until %s", q.record.ID, q.record.Expires.Local().Format(time.TimeOnly))
	if q.others > 0 {
		text += fmt.Sprintf("; others wait: %d", q.others)
	}
	text += "\n"
	if more := len(rows) - fit; more > 0 {
		text += strings.Join(rows[:fit], "") + fmt.Sprintf("  ~ %d more lines; d shows everything\n", more)
	} else {
		text += strings.Join(rows, "") + "\n"
	}
	_, err := fmt.Fprint(w.app.stderr, text)
	return err
}

// details shows everything about the call.
func (q *question) details() error {
	w := q.watch
	q.seen = true
	if _, err := fmt.Fprint(w.app.stderr, "\n", viewText(approval.Show(q.record), w.app.stderr), "\n", keysText); err != nil {
		return err
	}
	return errAskAgain
}

// explain says which answers there are.
func (q *question) explain(answer string) error {
	w := q.watch
	w.tell(fmt.Sprintf("%q is no answer", head(answer, 20)))
	if _, err := fmt.Fprint(w.app.stderr, keysText); err != nil {
		return err
	}
	return errAskAgain
}

// read asks and returns the answer. The question ends with a [*closedError] when the call needs no
// answer any more.
func (q *question) read(ctx context.Context, prompt string) (string, error) {
	w := q.watch
	_ = pause(ctx, time.Until(w.ended.Add(betweenQuestions))) // ask sees the end of ctx
	return w.terminal.ask(ctx, prompt, func() error {
		changed, err := q.news.look()
		if err != nil || !changed {
			return err
		}
		now, err := q.c.Approval(ctx, q.record.ID)
		switch {
		case err != nil:
		case now.State != approval.Open:
			err = &closedError{now.Record}
		case w.bell || !q.told:
			err = q.lookForOthers(ctx)
		}
		return err
	})
}

// lookForOthers rings for calls that wait since the card was shown, and tells about the first: many
// lines would move the card off the screen.
func (q *question) lookForOthers(ctx context.Context) error {
	w := q.watch
	known := w.rung
	open, err := w.open(ctx, q.c)
	if err != nil || q.told || !slices.ContainsFunc(open, func(r httpapi.Approval) bool { return !known[r.ID] }) {
		return err
	}
	q.told = true
	w.tell("another call waits for approval; it is shown after this one")
	return nil
}

// decide sends the person's answer, which is bound to what was shown.
func (q *question) decide(ctx context.Context, send func(*client.Client, context.Context, string, client.Answer) (approval.Record, error), answer client.Answer) error {
	w := q.watch
	record, err := send(q.c, ctx, q.record.ID, answer.Seen(q.record))
	refused, ok := errors.AsType[*httpapi.Problem](err)
	switch {
	case err == nil:
		return w.app.printDecision(record)
	case !ok || hostGone(err):
		return err
	}
	w.app.report(nil, refused)
	if now, err := q.c.Approval(ctx, q.record.ID); err != nil || now.State != approval.Open {
		return err
	}
	if refused.Status == http.StatusForbidden || refused.Status == http.StatusNotFound { // another person decides
		w.left[q.record.ID] = true
		return nil
	}
	return errAskAgain
}

// grant asks which later calls shall run unasked, and approves the call with that grant.
func (q *question) grant(ctx context.Context) error {
	w := q.watch
	if !q.record.Standing {
		w.tell("this call can only be approved once: " + cmp.Or(q.record.NoGrant, "the policy wants a person to see each such call"))
		return errAskAgain
	}
	fmt.Fprintf(w.app.stderr, "Which later calls run unasked: --always, %s--for 8h or --uses 3; narrower with --path DIR or\n"+
		"--command \"npm test *\", wider with --plugin. Enter means --always.\n", ofSession(q.record))
	answer, err := q.read(ctx, "Terms: ")
	if err != nil {
		return err
	}
	var grant grantFlags
	flags := pflag.NewFlagSet("terms", pflag.ContinueOnError)
	grant.register(flags)
	terms, err := grant.read(flags, answer)
	if err != nil {
		w.tell(err.Error())
		return errAskAgain
	}
	sure, err := q.read(ctx, approveQuestion(flags, true)+" [y/N] ")
	if err != nil {
		return err
	}
	if !isYes(sure) {
		return errAskAgain
	}
	return q.decide(ctx, (*client.Client).Approve, client.Answer{Grant: terms})
}

// read reads terms that a person typed as the flags of approve; nothing means --always.
func (g *grantFlags) read(flags *pflag.FlagSet, text string) (*client.Terms, error) {
	words, err := shell.Fields(text, nil)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		words = []string{"--always"}
	}
	if err := flags.Parse(words); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%q is not one of these flags", flags.Arg(0))
	}
	terms, err := g.terms(flags)
	if err == nil && terms == nil {
		err = errors.New("say how long later calls run unasked: --always, --session, --for 8h or --uses 3")
	}
	return terms, err
}
