package event

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Kind is the kind of an event.
type Kind string

// The kinds of events, in their order within one call.
const (
	KindToolCall       Kind = "tool.call"
	KindToolApproval   Kind = "tool.approval"
	KindAgentState     Kind = "agent.state"
	KindToolProgress   Kind = "tool.progress"
	KindToolResult     Kind = "tool.result"
	KindFileChanged    Kind = "file.changed"
	KindPluginState    Kind = "plugin.state"
	KindCatalogChanged Kind = "catalog.changed"
	KindDefinitions    Kind = "plugin.definitions"
	KindConnection     Kind = "network.connection"
	KindCallsStopped   Kind = "calls.stopped"
	KindBrokenClaim    Kind = "claim.broken"
	// KindGap replaces events that are no longer kept.
	KindGap Kind = "gap"
)

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{
		KindToolCall, KindToolApproval, KindAgentState, KindToolProgress, KindToolResult, KindFileChanged,
		KindPluginState, KindCatalogChanged, KindDefinitions, KindConnection, KindCallsStopped, KindBrokenClaim, KindGap,
	}
}

// Limits of one event, in bytes.
const (
	maxValue = 16 * tool.KiB // arguments, a result
	maxText  = 4 * tool.KiB  // any other; no path is longer
)

// Data is the content of an event: one of the types of this package.
type Data interface {
	kind() Kind
	// fit returns the data, shortened to the limits of an event, and its size in
	// bytes.
	fit() (Data, int)
}

// ToolCall reports that a call was checked and decided.
type ToolCall struct {
	ID      string `json:"id"`
	Tool    string `json:"tool"`
	Plugin  string `json:"plugin"`
	Session string `json:"session,omitempty"`
	Client  string `json:"client,omitempty"`
	// Params are the canonical arguments as they may be shown. Those of more
	// than 16 KiB are omitted, and ParamsBytes is their size.
	Params           json.RawMessage `json:"params,omitempty"`
	ParamsBytes      int             `json:"params_bytes,omitempty"`
	Tier             tool.Tier       `json:"tier"`
	RequiresApproval bool            `json:"requires_approval"`
	// Verdict is the policy's decision, by Rule. Denied calls are published too.
	Verdict string `json:"verdict"`
	Rule    string `json:"rule"`
}

func (d ToolCall) kind() Kind { return KindToolCall }

func (d ToolCall) fit() (Data, int) {
	if len(d.Params) > int(maxValue) {
		d.ParamsBytes, d.Params = len(d.Params), nil
	}
	return d, bound(&d.ID, &d.Tool, &d.Plugin, &d.Session, &d.Client, &d.Verdict, &d.Rule) + len(d.Params)
}

// ToolApproval reports that people are asked about a call, or the outcome.
type ToolApproval struct {
	// ID is the approval's, Call the call's that waits for it.
	ID     string `json:"id"`
	Call   string `json:"call"`
	Tool   string `json:"tool"`
	Plugin string `json:"plugin"`
	// State is open, approved, rejected, expired, canceled or spent.
	State     string    `json:"state"`
	Expires   time.Time `json:"expires"`
	DecidedBy string    `json:"decided_by,omitempty"`
	Message   string    `json:"message,omitempty"`
}

func (d ToolApproval) kind() Kind { return KindToolApproval }

func (d ToolApproval) fit() (Data, int) {
	return d, bound(&d.ID, &d.Call, &d.Tool, &d.Plugin, &d.State, &d.DecidedBy, &d.Message)
}

// The states of a session in [AgentState].
const (
	AwaitingApproval = "awaiting_approval"
	AwaitingInput    = "awaiting_input"
	ToolExecution    = "tool_execution"
	Idle             = "idle"
)

// AgentState reports what a session is doing from now on.
type AgentState struct {
	Session string `json:"session"`
	State   string `json:"state"`
}

func (d AgentState) kind() Kind { return KindAgentState }

func (d AgentState) fit() (Data, int) { return d, bound(&d.Session, &d.State) }

// ToolProgress reports the progress of a call.
type ToolProgress struct {
	ID string `json:"id"`
	tool.Progress
}

func (d ToolProgress) kind() Kind { return KindToolProgress }

func (d ToolProgress) fit() (Data, int) { return d, bound(&d.ID, &d.Message) }

// The outcomes of a call in [ToolResult].
const (
	Success  = "success"
	Error    = "error"
	Rejected = "rejected"
)

// ToolResult reports how a call ended.
type ToolResult struct {
	ID     string `json:"id"`
	Tool   string `json:"tool"`
	Status string `json:"status"`
	// Result holds the texts and the structured result. Those of more than 16
	// KiB together are omitted, and ResultBytes is their size.
	Result      *ResultData `json:"result,omitempty"`
	ResultBytes int         `json:"result_bytes,omitempty"`
	Error       *ErrorData  `json:"error,omitempty"`
	// Reason is why a call was rejected.
	Reason          string `json:"reason,omitempty"`
	ExecutionTimeMS int64  `json:"execution_time_ms"`
}

// ResultData is the part of a result in an event.
type ResultData struct {
	Content    string          `json:"content"`
	Structured json.RawMessage `json:"structured,omitempty"`
}

// ErrorData is why a call failed.
type ErrorData struct {
	Code    string `json:"code"` // in upper case
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// ResultOf returns the data about a call that ended with a result.
func ResultOf(id, name string, r tool.Result, took time.Duration) ToolResult {
	d := ToolResult{ID: id, Tool: name, Status: Success, ExecutionTimeMS: took.Milliseconds()}
	size := len(r.Structured)
	for _, part := range r.Content {
		if part.Kind == tool.KindText {
			size += len(part.Data) + 1
		}
	}
	switch {
	case size > int(maxValue):
		d.ResultBytes = size
	case size > 0:
		d.Result = &ResultData{Content: r.Text(), Structured: r.Structured}
	}
	switch e := r.Error; {
	case e == nil:
	case e.Code == tool.Rejected:
		d.Status, d.Reason = Rejected, e.Message
	default:
		d.Status = Error
		d.Error = &ErrorData{Code: strings.ToUpper(string(e.Code)), Message: e.Message, Hint: e.Hint}
	}
	return d
}

func (d ToolResult) kind() Kind { return KindToolResult }

func (d ToolResult) fit() (Data, int) {
	size := bound(&d.ID, &d.Tool, &d.Status, &d.Reason)
	if d.Error != nil {
		e := *d.Error
		d.Error = &e
		size += bound(&e.Code, &e.Message, &e.Hint)
	}
	if d.Result != nil {
		if own := len(d.Result.Content) + len(d.Result.Structured); own > int(maxValue) {
			d.ResultBytes, d.Result = own, nil
		} else {
			size += own
		}
	}
	return d, size
}

// FileChanged reports that a call changed a file.
type FileChanged struct {
	ID        string `json:"id"` // the call's
	Path      string `json:"path"`
	Operation string `json:"operation"`
}

func (d FileChanged) kind() Kind { return KindFileChanged }

func (d FileChanged) fit() (Data, int) {
	return d, bound(&d.ID, &d.Path, &d.Operation)
}

// PluginState reports a new phase in the life of a plugin's processes.
type PluginState struct {
	Name string `json:"name"`
	// User and Session are those whose processes they are; "" means everybody's.
	User    string `json:"user,omitempty"`
	Session string `json:"session,omitempty"`
	// Reader is set for the process that serves read_only calls, with split_tiers.
	Reader bool   `json:"reader,omitempty"`
	Phase  string `json:"phase"`
}

func (d PluginState) kind() Kind { return KindPluginState }

func (d PluginState) fit() (Data, int) { return d, bound(&d.Name, &d.User, &d.Session, &d.Phase) }

// CatalogChanged reports that the offered tools have changed.
type CatalogChanged struct {
	Tools int `json:"tools"` // how many there are now
}

func (d CatalogChanged) kind() Kind { return KindCatalogChanged }

func (d CatalogChanged) fit() (Data, int) { return d, 0 }

// Definitions reports that definitions of a plugin's tools wait to be accepted, or that an
// administrator has accepted some.
type Definitions struct {
	Plugin string `json:"plugin"`
	// Pending is how many wait now.
	Pending int `json:"pending"`
	// By is the administrator who has accepted some; "" if the plugin has changed.
	By string `json:"by,omitempty"`
}

func (d Definitions) kind() Kind { return KindDefinitions }

func (d Definitions) fit() (Data, int) { return d, bound(&d.Plugin, &d.By) }

// The states of a connection in [Connection].
const (
	ConnectionOpen    = "open"
	ConnectionClosed  = "closed"
	ConnectionRefused = "refused"
)

// Connection reports a connection of a plugin's process to another machine.
type Connection struct {
	Plugin string `json:"plugin"`
	// Call is the call that caused it, if one is known.
	Call string `json:"call,omitempty"`
	// Host is "host:port", State is open, closed or refused, and Rule is what decided.
	Host  string `json:"host"`
	State string `json:"state"`
	Rule  string `json:"rule"`
	// Error is why it was refused or failed.
	Error string `json:"error,omitempty"`
	// Sent and Received are bytes of a connection that is closed.
	Sent     int64 `json:"sent,omitempty"`
	Received int64 `json:"received,omitempty"`
}

func (d Connection) kind() Kind { return KindConnection }

func (d Connection) fit() (Data, int) {
	return d, bound(&d.Plugin, &d.Call, &d.Host, &d.State, &d.Rule, &d.Error)
}

// The states of a stop in [CallsStopped].
const (
	Stopped = "stopped"
	Resumed = "resumed"
)

// CallsStopped reports that an admin has stopped calls, or has resumed them.
type CallsStopped struct {
	// ID is the stop's.
	ID    string `json:"id"`
	State string `json:"state"`
	// User and Plugin are those whose calls it covers; "" covers all.
	User   string `json:"user,omitempty"`
	Plugin string `json:"plugin,omitempty"`
	// Calls describes the calls, such as "all calls to the plugin fs".
	Calls  string `json:"calls"`
	Reason string `json:"reason,omitempty"`
	// By is the admin who stopped or resumed them.
	By string `json:"by"`
}

func (d CallsStopped) kind() Kind { return KindCallsStopped }

func (d CallsStopped) fit() (Data, int) {
	return d, bound(&d.ID, &d.State, &d.User, &d.Plugin, &d.Calls, &d.Reason, &d.By)
}

// BrokenClaim reports a sign that a tool which claims to be read_only tried to change something. It
// ran in a process that can change nothing.
type BrokenClaim struct {
	ID     string `json:"id"` // the call's
	Tool   string `json:"tool"`
	Plugin string `json:"plugin"`
	// Sign is the text of the tool's error that says so.
	Sign string `json:"sign"`
}

func (d BrokenClaim) kind() Kind { return KindBrokenClaim }

func (d BrokenClaim) fit() (Data, int) { return d, bound(&d.ID, &d.Tool, &d.Plugin, &d.Sign) }

// Gap reports missing events.
type Gap struct {
	// Missed is their number; nil if it is not known, for example after a restart of the host.
	Missed *uint64 `json:"missed"`
}

func (d Gap) kind() Kind { return KindGap }

func (d Gap) fit() (Data, int) { return d, 0 }

// bound shortens texts to the bound of an event and returns their size.
func bound(texts ...*string) int {
	size := 0
	for _, text := range texts {
		*text = excerpt.Of(*text, int(maxText))
		size += len(*text)
	}
	return size
}
