package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"runtime/debug"

	"github.com/toolhost/toolhost/sdk/proxy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Config is what a plugin gets from the host besides its settings.
type Config struct {
	// Name is the name of the plugin's block in the host's configuration.
	Name string
	// StateDir is the plugin's own directory, kept between starts; "" means none.
	StateDir string
	// ScratchDir is a directory that the host empties when the process ends.
	ScratchDir string
	// Proxy is the address of the host's proxy, which is then the only way to the network; ""
	// means none. [Plugin.HTTPClient] and [Call.Proxy] use it.
	Proxy string
	// MemoryLimit is the memory that the process may use; 0 means no limit. The
	// sdk sets the limit of the garbage collector.
	MemoryLimit tool.ByteSize
	// NoNetwork means that the sandbox gives the plugin no network.
	NoNetwork bool
}

// ProxyEnv returns the variables of this process, as NAME=value, by which programs find the
// host's proxy; nil without a proxy. Pass them to programs that the plugin starts.
func (c Config) ProxyEnv() (env []string) {
	if c.Proxy == "" {
		return nil
	}
	for _, name := range proxy.Variables() {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// SettingError is a mistake in one setting. A function given to [Configure]
// returns one, or several joined with [errors.Join].
type SettingError struct {
	// Path is the path of the setting: JSON names, and indices of lists in
	// decimal, as in {"limits", "0", "size"}. The host adds file and line.
	Path []string
	// Summary is one line: the mistake, and what was expected.
	Summary string
	// Detail explains more. It may be empty.
	Detail string
	// Warning means that the plugin can work nevertheless.
	Warning bool
	// Unavailable means that the setting may be right, but what it names does not answer now. The
	// plugin does not start, and the host tries again later.
	Unavailable bool
}

// Error implements error: the summary.
func (e *SettingError) Error() string { return e.Summary }

// settings is the argument of Configure without its type.
type settings struct {
	schema json.RawMessage
	apply  func(context.Context, Config, json.RawMessage) error
}

// Configure sets the type of the settings in the plugin's configuration block,
// and the function that applies them. Settings is a struct with the tags of
// [AddTool], except alias and raw. Sizes and durations have the types
// [tool.ByteSize] and [time.Duration]; people write them with a unit, also in
// the tags min, max and default.
//
// The host calls f once, before the first call of a tool. The settings that f
// gets satisfy the schema and have their defaults. f may add tools that depend
// on the settings. If f returns an error, the plugin does not start; return a
// [SettingError] to name the setting.
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

// lowerMemoryLimit sets the memory limit of the garbage collector, unless a lower one is set:
// the host sets GOMEMLIMIT from its own limits.
func lowerMemoryLimit(bytes int64) {
	if bytes < debug.SetMemoryLimit(-1) {
		debug.SetMemoryLimit(bytes)
	}
}

// configure applies the settings with the author's function and returns the
// mistakes.
func (p *Plugin) configure(ctx context.Context, cfg Config, raw json.RawMessage) []*SettingError {
	var at *url.URL
	if cfg.Proxy != "" {
		var err error
		if at, err = url.Parse(cfg.Proxy); err != nil {
			return []*SettingError{{Summary: fmt.Sprintf("the proxy's address is not a URL: %v", err)}}
		}
	}
	p.proxy.Store(at)
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

// settingErrors splits a joined error. An error of another type gets no path.
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
