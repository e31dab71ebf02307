package pipeline

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/patch"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxRounds bounds how often one call begins anew because the world changed
// under it: the tool was replaced, or what a person approved is not so any
// more.
const maxRounds = 3

// call is one call on its way.
type call struct {
	Request
	id      string
	started time.Time
	flight  *Flight

	entry     *catalog.Entry   // after it was looked up
	arguments schema.Arguments // after they were checked
	hash      string           // of the canonical arguments
	admission admission        // after it was admitted
	tier      tool.Tier        // after the arguments were checked
	names     []string         // of the files that the arguments name, in patches too, after that
	commands  []policy.Command // of its arguments, as they were read when it was decided
	tree      *command.Line    // that of them which is executed by its tree, if nobody approves its text
	named     []string         // of the sensitive files that it names, as it was decided last
	decision  policy.Decision  // after it was decided
	sensitive []string         // files that it names and may use once it is allowed, after that
	grantable approval.Call    // what of it a grant can be about, of one that a grant would answer
	question  approval.Record  // what a person was asked in this round, as it stands; no ID: none was
	approval  approval.Record  // after a person approved it; no ID: none did
	preview   *tool.Preview    // what was shown to that person; nil: nothing
	noPreview string           // why nothing was, though the tool has previews
	binding   string           // what the approval is bound to
	begun     bool             // its start is in the journal
	cacheKey  cacheKey         // of a call whose result may be kept
	epoch     int              // of the cache, when the call began
	attempts  int              // how often it was handed to the plugin in this round
	sent      bool             // the plugin may have seen it
	keyed     bool             // its idempotency key is taken by it
	again     bool             // it begins anew
	replay    string           // the id of the earlier call whose result it gets; "" if it runs itself
	announced bool             // whoever watches knows of it
	stream    stream           // what the tool puts out in this attempt
}

// run takes a call through its steps, and again from the start if the world
// changed on the way: what was checked against one program is never sent to
// another, and what was approved for one state never runs on another. A panic
// on the way, in a runner or over what a plugin or a caller sent, is an error
// like any other.
func (p *Pipeline) run(ctx context.Context, c *call) (result tool.Result, err error) {
	defer c.dropStream()
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
		if round < maxRounds-1 { // the last one ends with the call
			p.endRound(ctx, c, result, err)
			c.again = true
		}
	}
	if errors.Is(err, errStale) {
		err = tool.Errorf(tool.Conflict, "what the call would change was changed each time that somebody had approved it").
			WithHint("look at what is there now, then call again")
	}
	return result, err
}

// steps takes a call through every step up to its result, in the order that
// the security of the host rests on. The error is a [*tool.Error] for the
// caller, or something for the log; [errReplaced] and [errStale] if the call
// can be made anew; a [*following] if another flight carries the same call.
func (p *Pipeline) steps(ctx context.Context, c *call) (tool.Result, error) {
	if err := p.lookUp(c); err != nil {
		return tool.Result{}, err
	}
	if err := c.check(); err != nil {
		return tool.Result{}, err
	}
	if result, known, err := p.recall(ctx, c); known || err != nil {
		return result, err
	}
	if err := p.admit(c); err != nil {
		return tool.Result{}, err
	}
	if err := p.decide(c); err != nil {
		return tool.Result{}, err
	}
	defer p.letGo(ctx, c)
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
	result, err := p.carry(ctx, c)
	if err != nil {
		return result, err
	}
	result = p.checkResult(c, result)
	p.cache.keep(c, result)
	return result, nil
}

// lookUp finds the tool by name or alias.
func (p *Pipeline) lookUp(c *call) error {
	entry, err := p.opts.Catalog.Lookup(c.Tool)
	if err != nil {
		return err
	}
	c.entry = entry
	return nil
}

// check reads the arguments, makes them canonical and finds the tier that they
// give the call. From here on, the canonical text is what is hashed, shown,
// recorded and sent.
func (c *call) check() error {
	value, err := schema.Read(c.Request.Arguments)
	if err != nil {
		return err
	}
	if c.arguments, err = c.entry.Schema.Check(value); err != nil {
		return err
	}
	c.hash = digest(c.arguments.Canonical)
	if c.tier, err = c.entry.TierOf(c.arguments.Values); err != nil {
		return err
	}
	return c.nameFiles()
}

// nameFiles finds the files that the arguments name. A patch that cannot be read is
// refused, and a name with a NUL byte, which some programs end or join there: the
// policy could not judge the files that are meant.
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
			return tool.Errorf(tool.InvalidArgument, "the path %s holds a NUL byte", tool.VisibleName(name)).
				WithHint("no file has such a name; write the path without it")
		}
	}
	return nil
}

// newCallID returns an id that sorts by time.
func newCallID() string {
	id, err := uuid.NewV7()
	if err != nil {
		// crypto/rand ends the process rather than fail, so that this is for
		// the signature only.
		id = uuid.New()
	}
	return "tc_" + id.String()
}
