package sdk

import (
	"errors"
	"fmt"
	"slices"
)

// DefinitionError is a mistake in the definition of a plugin, such as a field
// without a description or a name that is used twice. A plugin that has one cannot
// be served.
type DefinitionError struct {
	// Tool is the name of the tool; "" if the mistake is not in a tool.
	Tool string
	// Field is the path of the field by JSON names, such as "items[].path"; "" if
	// the mistake is not in a field.
	Field string
	// Reason describes the mistake and what was expected.
	Reason string
}

// Error implements error: the place and the reason.
func (e *DefinitionError) Error() string {
	switch {
	case e.Tool != "" && e.Field != "":
		return fmt.Sprintf("tool %q: %s: %s", e.Tool, e.Field, e.Reason)
	case e.Tool != "":
		return fmt.Sprintf("tool %q: %s", e.Tool, e.Reason)
	case e.Field != "":
		return fmt.Sprintf("settings: %s: %s", e.Field, e.Reason)
	default:
		return e.Reason
	}
}

// Err returns every [DefinitionError] so far, joined with [errors.Join], or nil.
// [Plugin.Serve] refuses to serve a plugin that has one, so that its author sees
// the mistake before users miss a tool.
func (p *Plugin) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.mistakes...)
}

// mistakesSince returns the mistakes after the first n.
func (p *Plugin) mistakesSince(n int) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mistakes[min(n, len(p.mistakes)):])
}

func (p *Plugin) mistake(toolName, field, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mistakes = append(p.mistakes, &DefinitionError{Tool: toolName, Field: field, Reason: fmt.Sprintf(format, args...)})
}
