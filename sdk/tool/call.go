package tool

import (
	"context"
	"encoding/json"
)

// Call is one call of a tool, as data. The host makes it; a plugin's author
// sees it through the sdk's handle.
type Call struct {
	// ID is the call's own, "tc_" and a UUIDv7.
	ID string `json:"id"`
	// Tool is the tool's name, never an alias.
	Tool string `json:"tool"`
	// Arguments is a canonical JSON object that satisfies the tool's schema.
	Arguments json.RawMessage `json:"arguments"`
	// CommandTree is the argument of [RoleCommand] as a syntax tree, in the typed JSON of
	// mvdan.cc/sh. If it is set, the tree is executed and no shell gets the text; see
	// [Execution]. It is empty if a person has approved the text, or the administrator
	// allows texts.
	CommandTree json.RawMessage `json:"-"`
	// Context is what the tool may know about its caller.
	Context Context `json:"context"`
}

// Execution is one part of a command that is executed by its tree, at the moment of its
// execution: a program or builtin with all its words, or a file that is opened.
type Execution struct {
	// Argv is the program or builtin and its arguments; nil if a file is opened.
	Argv []string
	// Environment are the variables, as NAME=value, that the command has set.
	Environment []string
	// Directory is the absolute path where it runs.
	Directory string
	// File is the absolute path of the file that is opened, without symbolic links.
	File string
	// Write says that the file is written to, or made.
	Write bool
}

// Context is what a tool may know about its caller. It does not change during
// the call. (It is no [context.Context]: that one carries the cancellation.)
type Context struct {
	Session string `json:"session,omitempty"`
	User    string `json:"user,omitempty"`
	// Client is the client program's name, as it says itself.
	Client string `json:"client,omitempty"`
	// Traceparent is a W3C Trace Context.
	Traceparent string `json:"traceparent,omitempty"`
	// Attempt is 1 for the first.
	Attempt int `json:"attempt,omitempty"`
	// ApprovalID names the approval that lets the call run; "" if it needed
	// none.
	ApprovalID string `json:"approval_id,omitempty"`
	// PreviewDigest is the digest of the preview that was approved. The tool
	// must refuse with [Conflict] if the state is no longer that one.
	PreviewDigest []byte `json:"preview_digest,omitempty"`
	// MaxOutput is the size that the result should have at most.
	MaxOutput ByteSize `json:"max_output,omitempty"`
	// Roots are the directories that the caller may work in; relative paths
	// are relative to the first.
	Roots []string `json:"roots,omitempty"`
	// Protected are absolute paths that no tool may change, nor what is below
	// them; nor may it remove or rename a directory above them.
	Protected []string `json:"protected,omitempty"`
	// Files is what the host says of files by their names; nil if it says nothing.
	Files *FilePolicy `json:"files,omitempty"`
	// UserDir is a directory of the user's own in the plugin's state.
	UserDir string `json:"user_dir,omitempty"`
	// Ticket is the call's authority towards the host. It is never shown.
	Ticket []byte `json:"-"`
}

// FilePolicy is what the host says of files by their names.
type FilePolicy struct {
	// Sensitive are patterns of names of files that usually hold secrets, as package
	// sensitive of the sdk reads them. A tool shows no such file unless it is allowed.
	Sensitive []string `json:"sensitive"`
	// Allowed are absolute paths that the call names and may use, with what is below
	// them, though a pattern covers them: the policy has allowed it, or a person has.
	Allowed []string `json:"allowed,omitempty"`
	// Protect are words of package protect of the sdk: no file of a name that they stand
	// for is changed.
	Protect []string `json:"protect"`
	// Forbidden are patterns of absolute paths that no call may use, with what is below
	// them, as package forbidden of the sdk reads them. Whatever Allowed says, a tool
	// neither shows nor changes what they cover, and lists no name of it.
	Forbidden []string `json:"forbidden,omitempty"`
}

// Progress says how far a call has come.
type Progress struct {
	Progress float64 `json:"progress"`
	// Total is 0 if it is not known.
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// Stream names one of the two outputs of a command.
type Stream int

// The streams.
const (
	Stdout Stream = iota + 1
	Stderr
)

// Chunk is a part of the whole output, as it comes.
type Chunk struct {
	Stream Stream
	Data   []byte
}

// Preview says what a call would do.
type Preview struct {
	// Summary is one line.
	Summary string `json:"summary"`
	// Content is the whole: a diff, a list.
	Content []Content `json:"content,omitempty"`
	// Digest identifies the state that the preview was computed from. It comes
	// back as [Context.PreviewDigest] when the call runs.
	Digest []byte `json:"digest,omitempty"`
}

// Sink receives what a call says before its result. A nil Progress or Chunk
// drops it. These two are called one at a time, in order, and must not block.
type Sink struct {
	Progress func(Progress)
	Chunk    func(Chunk)
	// Ask asks the user on behalf of the call. It blocks until there is an answer
	// or ctx ends, and may be called while the others are. Its errors are
	// [*Error] for the tool, which may pass them on. nil means that nobody can be
	// asked.
	Ask func(ctx context.Context, q Question) (Answer, error)
	// MayRun judges one part of a command that is executed by its tree: nil lets it run,
	// an error is what the call ends with. It waits for nobody. nil refuses all.
	MayRun func(e Execution) *Error
}

// Question is what a tool asks the user of its call.
type Question struct {
	Text string
	// Schema is a JSON Schema of the answer: an object with properties of simple
	// types.
	Schema json.RawMessage
}

// Answer is what the user said.
type Answer struct {
	// Given is false if the user declined to answer.
	Given bool
	// Values is a JSON object that satisfies the question's schema, if the answer
	// was given.
	Values json.RawMessage
}
