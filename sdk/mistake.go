package sdk

import (
	"errors"
	"fmt"
	"slices"
)

// DefinitionError is something in a plugin's code that keeps it from being served: a
// field without a description, a name used twice.
type DefinitionError struct {
	// Tool is the tool's name; "" if the mistake is the plugin's.
	Tool string
	// Field is the path of a field by its JSON names, such as "items[].path";
	// "" if the mistake is not about a field.
	Field string
	// Reason says what is wrong and what was expected.
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

// Err returns every [DefinitionError] made so far, joined with [errors.Join], or nil.
// Serve refuses to start a plugin that has one: a plugin that silently lacks a
// tool is found out by its users, a plugin that does not start by its author.
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
