package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"runtime/debug"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Config is what the host gives to a plugin beside its settings.
type Config struct {
	// StateDir is a directory of the plugin's own that is kept between starts;
	// "" if it has none.
	StateDir string
	// ScratchDir is a directory that is emptied when the process ends.
	ScratchDir string
	// Proxy is the address of the host's proxy; "" if there is none.
	// [Plugin.HTTPClient] uses it.
	Proxy string
	// MemoryLimit is the memory that the process may use; 0 means no limit.
	// The garbage collector knows it already.
	MemoryLimit tool.ByteSize
}

// SettingError is something to say about one setting. A function given to
// [Configure] returns it, or several by [errors.Join].
type SettingError struct {
	// Path leads to the setting by the JSON names, list indices in decimal:
	// {"limits", "0", "size"}. The host finds its file and line.
	Path []string
	// Summary is one line: what is wrong and what was expected.
	Summary string
	// Detail says more; it may be empty.
	Detail string
	// Warning says that the plugin can work nevertheless.
	Warning bool
}

// Error implements error: the summary.
func (e *SettingError) Error() string { return e.Summary }

// settings is what Configure was given, without its type.
type settings struct {
	schema json.RawMessage
	apply  func(context.Context, Config, json.RawMessage) error
}

// Configure says what settings the plugin takes in its configuration block,
// and what to do with them. Settings is a struct with the tags of [AddTool],
// except alias and raw. Sizes and durations have the types [tool.ByteSize] and
// [time.Duration]: people write them with a unit.
//
// The host calls f once, before the first call of a tool. Its settings satisfy
// the schema and have their defaults. A plugin may add tools in f if which it
// has depends on the settings. An error keeps the plugin from starting; use
// [SettingError] to say which setting is wrong.
func Configure[Settings any](p *Plugin, f func(context.Context, Config, Settings) error) {
	t := reflect.TypeFor[Settings]()
	if t.Kind() != reflect.Struct {
		p.mistake("", "", "the settings must be a struct, not %s", t)
		return
	}
	if f == nil {
		p.mistake("", "", "Configure was given no function")
		return
	}
	in := infer(t, settingsOf)
	for _, m := range in.mistakes {
		p.mistake("", m.Field, "%s", m.Reason)
	}
	p.mu.Lock()
	again := p.settings != nil
	p.settings = &settings{schema: in.schema, apply: func(ctx context.Context, cfg Config, raw json.RawMessage) error {
		values, err := decodeArguments[Settings](raw, in.defaults)
		if err != nil {
			return err
		}
		if wrong := in.bounds.check(raw); wrong != nil {
			return &SettingError{Path: wrong.path, Summary: wrong.shownPath() + " " + wrong.reason}
		}
		return f(ctx, cfg, values)
	}}
	p.mu.Unlock()
	if again {
		p.mistake("", "", "Configure was called twice")
	}
}

// lowerMemoryLimit makes the collector work within so many bytes: the rest is for
// stacks, descriptors and what the collector is late with. A host knows better what its
// limit leaves to the collector, and sets less by GOMEMLIMIT: that holds.
func lowerMemoryLimit(bytes int64) {
	if bytes < debug.SetMemoryLimit(-1) {
		debug.SetMemoryLimit(bytes)
	}
}

// configure hands the settings to the author's function and returns what is to
// be said about them.
func (p *Plugin) configure(ctx context.Context, cfg Config, raw json.RawMessage) []*SettingError {
	var proxy *url.URL
	if cfg.Proxy != "" {
		var err error
		if proxy, err = url.Parse(cfg.Proxy); err != nil {
			return []*SettingError{{Summary: fmt.Sprintf("the proxy's address cannot be read: %v", err)}}
		}
	}
	p.proxy.Store(proxy)
	if cfg.MemoryLimit > 0 {
		lowerMemoryLimit(int64(cfg.MemoryLimit) / 10 * 8)
	}

	p.mu.Lock()
	chosen, before := p.settings, len(p.mistakes)
	for _, e := range p.tools[p.static:] {
		delete(p.names, e.spec.Name)
		for _, alias := range e.spec.Aliases {
			delete(p.names, alias)
		}
	}
	p.tools, p.sealed = p.tools[:p.static:p.static], false
	p.mu.Unlock()

	var err error
	if chosen != nil {
		err = recovered(p.logger, "Configure", func() error { return chosen.apply(ctx, cfg, raw) })
	}

	p.mu.Lock()
	p.sealed = true
	p.mu.Unlock()
	return settingErrors(errors.Join(err, errors.Join(p.mistakesSince(before)...)))
}

// settingErrors takes an error apart. What is no SettingError has no path.
func settingErrors(err error) []*SettingError {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*SettingError
		for _, e := range joined.Unwrap() {
			all = append(all, settingErrors(e)...)
		}
		return all
	}
	if one, ok := errors.AsType[*SettingError](err); ok {
		wrapped := *one
		wrapped.Summary = err.Error()
		return []*SettingError{&wrapped}
	}
	return []*SettingError{{Summary: err.Error()}}
}
