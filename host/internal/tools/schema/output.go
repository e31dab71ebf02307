package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Output is the compiled schema of a tool's structured results. It is immutable and safe for
// concurrent use. The nil Output accepts any JSON.
type Output struct {
	public    json.RawMessage
	validator *jsonschema.Schema
}

// CompileOutput reads the output schema of a tool; empty text gives a nil Output. The error
// completes a sentence that ends with "refused because".
func CompileOutput(output json.RawMessage) (*Output, error) {
	if len(output) == 0 {
		return nil, nil
	}
	doc, err := readDocument(output)
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	if doc["type"] != "object" {
		return nil, errors.New(`output schema: at the root: the type must be "object"`)
	}
	if err := checkReferences(doc, nil); err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	if err := checkWork(doc); err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	if err := checkVisible(doc, nil); err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	validator, err := compileDocument(doc)
	if err != nil {
		return nil, fmt.Errorf("output schema: %w", err)
	}
	return &Output{public: Canonical(withoutKeywords(doc)), validator: validator}, nil
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
	if err := o.validator.Validate(value); err != nil {
		return tool.Errorf(tool.OutputInvalid, "the tool's structured result does not fit the schema that it publishes").
			WithCause(err)
	}
	return nil
}
