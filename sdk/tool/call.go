package tool

import (
	"context"
	"encoding/json"
	"time"
)

// Call is the data of one call of a tool. The host creates it. Authors of plugins
// use Call of package sdk.
type Call struct {
	// ID identifies the call: "tc_" and a UUIDv7.
	ID string `json:"id"`
	// Tool is the tool's name, never an alias.
	Tool string `json:"tool"`
	// Arguments is a canonical JSON object that satisfies the schema of the tool.
	Arguments json.RawMessage `json:"arguments"`
	// CommandTree is the argument of [RoleCommand] as a syntax tree, in the typed JSON of
	// mvdan.cc/sh. If it is set, the tool executes the tree and passes the text to no
	// shell; see [Execution]. It is empty if a person has approved the text, or the
	// administrator allows texts.
	CommandTree json.RawMessage `json:"-"`
	// Judged are parts of CommandTree that the host has let run in advance, and
	// JudgedUntil is when these answers end.
	Judged      []Judged  `json:"-"`
	JudgedUntil time.Time `json:"-"`
	// Tier is the tier of the call. The host decides it; plugins are not told.
	Tier Tier `json:"-"`
	// Context describes the caller.
	Context Context `json:"context"`
}

// Execution is one part of a command tree, right before it is executed: a program or
// builtin with all its words, or a file that is opened.
type Execution struct {
	// Argv is the program or builtin and its arguments; nil for a file that is opened.
	Argv []string
	// Environment lists the variables that the command has set, as NAME=value.
	Environment []string
	// Directory is the absolute path of the working directory.
	Directory string
	// File is the absolute path of the file that is opened, without symbolic links.
	File string
	// Write means that the file is written or created.
	Write bool
}

// Judged is the host's answer in advance to the question whether a part of a command
// tree may run: yes. It counts for that exact part, until [Call.JudgedUntil], and only if
// none of the paths leads through a symbolic link when the part runs.
type Judged struct {
	Execution

	// Unlinked are absolute paths that the part may name.
	Unlinked []string
}

// Context describes the caller of a tool. It does not change during the call. It
// is not a [context.Context].
type Context struct {
	Session string `json:"session,omitempty"`
	User    string `json:"user,omitempty"`
	// Client is the name that the client program has given itself.
	Client string `json:"client,omitempty"`
	// Traceparent is a W3C Trace Context.
	Traceparent string `json:"traceparent,omitempty"`
	// Attempt is 1 for the first attempt.
	Attempt int `json:"attempt,omitempty"`
	// ApprovalID is the id of the approval that the call runs by, or "".
	ApprovalID string `json:"approval_id,omitempty"`
	// PreviewDigest is the digest of the approved preview. The tool must return
	// [Conflict] if the state has changed since.
	PreviewDigest []byte `json:"preview_digest,omitempty"`
	// MaxOutput is the maximum size of the result.
	MaxOutput ByteSize `json:"max_output,omitempty"`
	// Roots are the directories that the caller may work in; relative paths
	// are relative to the first.
	Roots []string `json:"roots,omitempty"`
	// Protected lists absolute paths that no tool may change. This includes
	// everything below them; and no tool may remove or rename a directory above
	// them.
	Protected []string `json:"protected,omitempty"`
	// Files is the host's policy for files by name; nil means none.
	Files *FilePolicy `json:"files,omitempty"`
	// UserDir is the directory of the calling user in the plugin's state.
	UserDir string `json:"user_dir,omitempty"`
	// Ticket proves to the host that a request belongs to the call. It is never
	// shown.
	Ticket []byte `json:"-"`
}

// FilePolicy is the host's policy for files by name.
type FilePolicy struct {
	// Sensitive lists patterns for names of files that usually hold secrets, in the
	// form of package sdk/sensitive. A tool shows no such file unless it is allowed.
	Sensitive []string `json:"sensitive"`
	// Allowed lists absolute paths that match a pattern of Sensitive and that the call
	// may use, with everything below them, because the policy or a person has allowed
	// it.
	Allowed []string `json:"allowed,omitempty"`
	// Protect lists words of package sdk/protect. Tools do not change files that those words
	// name.
	Protect []string `json:"protect"`
	// Forbidden lists patterns for absolute paths that no call may use, with everything
	// below them, in the form of package sdk/forbidden. A tool neither shows, changes
	// nor lists them, even if they are in Allowed.
	Forbidden []string `json:"forbidden,omitempty"`
}

// Progress is the progress of a call.
type Progress struct {
	Progress float64 `json:"progress"`
	// Total is 0 if it is unknown.
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// Stream is one of the two outputs of a command.
type Stream int

// The streams.
const (
	Stdout Stream = iota + 1
	Stderr
)

// Chunk is a part of the output that is sent before the result.
type Chunk struct {
	Stream Stream
	Data   []byte
}

// Preview describes what a call would do.
type Preview struct {
	// Summary is one line.
	Summary string `json:"summary"`
	// Content holds the details, such as a diff or a list.
	Content []Content `json:"content,omitempty"`
	// Digest identifies the state that the preview was computed from. The call gets
	// it as [Context.PreviewDigest].
	Digest []byte `json:"digest,omitempty"`
}

// Sink receives the events of a call before its result, and answers its requests.
// A nil Progress or Chunk drops the events. These two are called one at a time, in
// order, and must not block.
type Sink struct {
	Progress func(Progress)
	Chunk    func(Chunk)
	// Ask asks the user a question of the call. It blocks until the user answers
	// or ctx ends, and may run at the same time as the others. Its errors are of
	// type [*Error], written for the tool. nil means that the user cannot be
	// asked.
	Ask func(ctx context.Context, q Question) (Answer, error)
	// MayRun decides whether one part of a command tree may run. It returns nil if it
	// may, and the error of the call if not. It asks no person. A nil MayRun refuses
	// all.
	MayRun func(e Execution) *Error
	// Connect decides about a connection that the call's process wants to make and that its
	// configuration does not allow. If wanted is true, it asks a person, and blocks until the
	// answer or the end of ctx; otherwise the call only learns of the refusal. A nil Connect
	// refuses all.
	Connect func(ctx context.Context, to Destination, wanted bool) (Permission, *Error)
	// NetworkPerDay is how many bytes the call's user may transfer in a day; 0 means no bound.
	NetworkPerDay ByteSize
}

// Destination is another machine that a plugin's process wants to connect to.
type Destination struct {
	// Host is a name in lower case ASCII, or an IP address.
	Host string
	Port uint16
	// Reason is why the configuration does not allow it; "" if a person decides.
	Reason string
}

// Permission says who decided about a connection that the configuration does not allow.
type Permission struct {
	// By is "user" or "grant" if it is allowed.
	By string `json:"approved_by,omitempty"`
	// Approval is the id of the approval, or of the grant.
	Approval string `json:"approval,omitempty"`
	// Approver is who answered.
	Approver string `json:"approver,omitempty"`
}

// Question is a question of a tool to the user.
type Question struct {
	Text string
	// Schema is a JSON Schema of the answer: an object with properties of simple
	// types.
	Schema json.RawMessage
}

// Answer is the answer of the user.
type Answer struct {
	// Given is false if the user declined to answer.
	Given bool
	// Values is a JSON object that satisfies the schema of the question, if Given is
	// true.
	Values json.RawMessage
}
