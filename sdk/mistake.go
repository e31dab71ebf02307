package sdk

import (
	"errors"
	"fmt"
	"slices"
)

// Mistake is something in a plugin's code that keeps it from being served: a
// field without a description, a name used twice.
type Mistake struct {
	// Tool is the tool's name; "" if the mistake is the plugin's.
	Tool string
	// Field is the path of a field by its JSON names, such as "items[].path";
	// "" if the mistake is not about a field.
	Field string
	// Reason says what is wrong and what was expected.
	Reason string
}

// Error implements error: the place and the reason.
func (m *Mistake) Error() string {
	switch {
	case m.Tool != "" && m.Field != "":
		return fmt.Sprintf("tool %q: %s: %s", m.Tool, m.Field, m.Reason)
	case m.Tool != "":
		return fmt.Sprintf("tool %q: %s", m.Tool, m.Reason)
	case m.Field != "":
		return fmt.Sprintf("settings: %s: %s", m.Field, m.Reason)
	default:
		return m.Reason
	}
}

// Err returns every [Mistake] made so far, joined with [errors.Join], or nil.
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
	p.mistakes = append(p.mistakes, &Mistake{Tool: toolName, Field: field, Reason: fmt.Sprintf(format, args...)})
}
