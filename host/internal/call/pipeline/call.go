package pipeline

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/sdk/patch"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxRounds is how often one call may take its steps. It starts again if the tool was
// replaced, or if the state that a person approved has changed.
const maxRounds = 3

// call is one call in progress.
type call struct {
	Request

	id        string
	started   time.Time
	operation *operation.Operation

	entry     *catalog.Entry   // set by lookUp
	workspace string           // the caller's own, set by lookUp; "" if callers have none
	arguments schema.Arguments // set by check
	hash      string           // of the canonical arguments
	tier      tool.Tier        // set by check
	names     []string         // of the files that the arguments name, including those in patches
	charged   *charge          // set by limitRate
	commands  []policy.Command // in the arguments, as read for the last decision
	tree      *command.Line    // the command that runs by its syntax tree unless a person approves its text
	named     []string         // the sensitive files that the last decision found in the arguments
	decision  policy.Decision  // set by decide
	sensitive []string         // the sensitive files that the call may use once it is allowed
	grantable approval.Call    // what a grant for this call can cover; zero if none can
	question  approval.Record  // the current question of this round; without an ID, no person was asked
	approval  approval.Record  // the question after a person approved it; without an ID, no person did
	preview   *tool.Preview    // what that person saw; nil means no preview
	noPreview string           // why a tool with previews has none here
	binding   string           // what the approval is bound to
	begun     bool             // the start is in the journal
	cacheKey  cacheKey         // of a call whose result may be cached
	epoch     int              // of the cache, when the call began
	attempts  int              // how often the plugin received the call in this round
	sent      bool             // the plugin may have seen the call
	keyed     bool             // the call holds its idempotency key
	restarted bool             // a round after the first
	replayed  string           // the id of the earlier call that the result comes from; "" if this call runs
	announced bool             // the call's event was published
	network   network          // what people said about connections that it makes
	stream    stream           // the tool's output in this attempt
	silence   silence          // since the last report of progress

	brokenClaim string // a sign that the tool tried to change something in a read_only call
}

// rounds takes a call through its steps, and starts again if the tool or the approved state
// has changed. Arguments that were checked against one program are never sent to another, and
// a call that was approved for one state never runs on another. A panic in a step becomes an
// error.
func (p *Pipeline) rounds(ctx context.Context, c *call) (result tool.Result, err error) {
	defer c.dropStream()
	defer c.silence.stop()
	defer func() {
		if value := recover(); value != nil {
			p.opts.Logger.Error("panic in a call", "call", c.id, "panic", value, "stack", string(debug.Stack()))
			result, err = tool.Result{}, errPanic
		}
	}()
	for round := range maxRounds {
		c.question, c.approval, c.preview = approval.Record{}, approval.Record{}, nil
		if result, err = p.steps(ctx, c); !errors.Is(err, errReplaced) && !errors.Is(err, errStale) {
			return result, err
		}
		if round < maxRounds-1 { // the last round ends with the call
			p.endRound(ctx, c, result, err)
			c.restarted = true
		}
	}
	if errors.Is(err, errStale) {
		err = tool.Errorf(tool.Conflict, "the state that the call would change has changed after each approval").
			WithHint("look at the current state, then call again")
	}
	return result, err
}

// steps takes a call through all steps, in the order that the host's security depends on. The
// error is a [*tool.Error] for the caller; [errReplaced] or [errStale] if the call can start
// again; a [*joinError] if another operation executes the same call; any other error goes to
// the log.
func (p *Pipeline) steps(ctx context.Context, c *call) (tool.Result, error) {
	if err := p.lookUp(c); err != nil {
		return tool.Result{}, err
	}
	c.operation.SetPlugin(c.entry.Plugin) // before the next step: a stop that it does not see finds the operation
	if err := p.refuseStopped(c); err != nil {
		return tool.Result{}, err
	}
	if !c.entry.OfHost() { // they pass on the reports of other calls
		c.silence.start(func() { p.remind(c) })
	}
	if err := c.check(); err != nil {
		return tool.Result{}, err
	}
	c.operation.SetChanges(c.tier != tool.ReadOnly)
	if result, known, err := p.replay(ctx, c); known || err != nil {
		return result, err
	}
	if err := p.limitRate(c); err != nil {
		return tool.Result{}, err
	}
	if err := p.decide(c); err != nil {
		return tool.Result{}, err
	}
	defer p.releaseApproval(ctx, c)
	if err := p.ask(ctx, c); err != nil {
		return tool.Result{}, err
	}
	if result, ok := p.cached(c); ok {
		return result, nil
	}
	release, err := p.slot(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	defer release()
	if err := p.begin(ctx, c); err != nil {
		return tool.Result{}, err
	}
	result, err := p.execute(ctx, c)
	if err != nil {
		return result, err
	}
	result = p.checkResult(c, p.noteBrokenClaim(c, result))
	if noted, refused := c.noteRefused(result); refused {
		return noted, nil // the next call may be allowed them
	}
	p.cache.keep(c, result)
	return result, nil
}

// lookUp finds the tool by name or alias.
func (p *Pipeline) lookUp(c *call) error {
	entry, err := p.opts.Catalog.LookupFor(c.Tool, c.Caller.MayUse)
	if err != nil {
		return err
	}
	c.entry = entry
	return p.findWorkspace(c)
}

// check reads the arguments, makes them canonical and finds the call's tier. The canonical
// text is hashed, shown, recorded and sent.
func (c *call) check() error {
	value, err := schema.Read(c.Request.Arguments)
	if err != nil {
		return err
	}
	if c.arguments, err = c.entry.Schema.Check(value); err != nil {
		return err
	}
	if c.entry.OfHost() && c.entry.Spec.Name == catalog.CallTool {
		return errNested // any other valid call was unwrapped
	}
	c.hash = digest.Of(c.arguments.Canonical)
	if c.tier, err = c.entry.TierOf(c.arguments.Values); err != nil {
		return err
	}
	return c.nameFiles()
}

// nameFiles finds the files that the arguments name. It refuses patches that it cannot read.
// It also refuses names with a NUL byte, because some programs end a name there: the policy
// could not tell which file is meant.
func (c *call) nameFiles() error {
	c.names = c.entry.ValuesOf(tool.RolePath, c.arguments.Values)
	for _, text := range c.entry.ValuesOf(tool.RolePatch, c.arguments.Values) {
		files, err := patch.Parse(text)
		if err != nil {
			return err
		}
		c.names = append(c.names, patch.Paths(files)...)
	}
	for _, name := range c.names {
		if strings.ContainsRune(name, 0) {
			return tool.Errorf(tool.InvalidArgument, "the path %s contains a NUL byte", tool.VisibleName(name)).
				WithHint("no file has such a name; write the path without it")
		}
	}
	return nil
}
