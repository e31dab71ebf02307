package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Output is the schema of a tool's structured results. It is immutable and safe for concurrent
// use. The nil Output accepts any JSON.
type Output struct {
	public    json.RawMessage
	validator func() (*jsonschema.Schema, error)
}

// CompileOutput reads the output schema of a tool; empty text gives a nil Output. The error
// completes a sentence that ends with "refused because".
func CompileOutput(output json.RawMessage) (*Output, error) {
	o, err := KnownOutput(output)
	if err != nil || o == nil {
		return nil, err
	}
	if _, err := o.validator(); err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	return o, nil
}

// KnownOutput is [CompileOutput] for a schema that CompileOutput has accepted before; see [Known].
func KnownOutput(output json.RawMessage) (*Output, error) {
	if len(output) == 0 {
		return nil, nil
	}
	doc, err := readOutput(output)
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	return &Output{
		public:    Canonical(withoutKeywords(doc)),
		validator: sync.OnceValues(func() (*jsonschema.Schema, error) { return compileDocument(doc) }),
	}, nil
}

func readOutput(output json.RawMessage) (map[string]any, error) {
	doc, err := readDocument(output)
	if err != nil {
		return nil, err
	}
	if doc["type"] != "object" {
		return nil, errors.New(`at the root: the type must be "object"`)
	}
	if err := checkReferences(doc, nil); err != nil {
		return nil, err
	}
	if err := checkWork(doc); err != nil {
		return nil, err
	}
	return doc, checkVisible(doc, nil)
}

// Public returns the schema for clients, or nil for the nil Output. The caller must not change it.
func (o *Output) Public() json.RawMessage {
	if o == nil {
		return nil
	}
	return o.public
}

// Same reports whether two schemas have the same meaning, however they are spelled.
func (o *Output) Same(other *Output) bool { return bytes.Equal(o.Public(), other.Public()) }

// Check checks a structured result. The error has code [tool.OutputInvalid]. Its message shows
// nothing of the result; its cause is the mistake.
func (o *Output) Check(structured json.RawMessage) *tool.Error {
	value, err := parse(structured, 0)
	if err != nil {
		return tool.Errorf(tool.OutputInvalid, "the tool's structured result is not JSON").WithCause(err)
	}
	if o == nil {
		return nil
	}
	validator, err := o.validator()
	if err == nil {
		err = validator.Validate(value)
	}
	if err != nil {
		return tool.Errorf(tool.OutputInvalid, "the tool's structured result does not fit the schema that it publishes").
			WithCause(err)
	}
	return nil
}
