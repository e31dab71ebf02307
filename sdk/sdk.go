// Package sdk serves tools to a toolhost. A plugin is a program that makes a
// [Plugin] with [New], adds tools with [AddTool] and calls [Plugin.Serve].
//
// A tool is a function from a struct to a result. The JSON schema that a model
// sees comes from the struct, so it cannot disagree with the code. Mistakes in
// the definition of a tool are reported by name when the plugin starts. The sdk
// sends results, errors, progress and output to the host. A tool that prints to
// standard output, fails or panics does not disturb other calls.
package sdk

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Plugin is a set of tools that a host can call. Make it with [New].
type Plugin struct {
	name, version string
	logger        *slog.Logger
	proxy         atomic.Pointer[url.URL]
	httpClient    *http.Client
	host          connection
	changed       chan struct{} // has room for one signal that revision has changed

	mu       sync.Mutex // guards everything below
	tools    []*entry
	names    map[string]string // name or alias -> the tool's name
	mistakes []error
	settings *settings
	static   int  // tools that do not depend on the settings
	sealed   bool // tools can no longer be added
	served   bool // the plugin has begun to serve
	revision int  // counts the changes by SetRawTools
	told     int  // the revision that the host knows
	onStop   []func()

	onSessionEnd []func(session string)

	stopping sync.Mutex // held by stop; taken before mu
}

// entry is one tool and what runs it.
type entry struct {
	spec    tool.Spec
	run     func(context.Context, *Call, json.RawMessage) (tool.Result, error)
	preview func(context.Context, *Call, json.RawMessage) (tool.Preview, error) // nil: none
}

// New returns a plugin without tools. The name must be the name of the plugin's
// block in the host's configuration ([tool.ValidPluginName]), and the version a
// semantic version ("1.0.0"). [Plugin.Err] and [Plugin.Serve] report an invalid
// name or version.
//
// In a process that a host started, New takes standard output and standard input
// away from the program: the host reads one line from the output, and the end of
// the input means that the host is gone. From then on, printed text goes to
// standard error, and standard input is empty. Such a process serves one plugin.
func New(name, version string) *Plugin {
	p := &Plugin{name: name, version: version, logger: slog.New(logHandler{logger: newLogger(name)}), names: map[string]string{}, changed: make(chan struct{}, 1)}
	p.httpClient = newHTTPClient(&p.proxy)
	if startedByHost() {
		// Serve reports the errors; until then nothing depends on them.
		_, _ = claimStdout()
		_, _ = claimStdin()
	}
	if !tool.ValidPluginName(name) {
		p.mistake("", "", "the plugin's name %q is not valid: expected a lower-case letter, then up to 63 of a-z, 0-9, _ and -", name)
	}
	if !ValidVersion(version) {
		p.mistake("", "", "the plugin's version %q is not valid: expected a semantic version such as \"1.0.0\"", version)
	}
	return p
}

// ValidVersion reports whether version can be a plugin's version: three numbers,
// and optionally a suffix of semantic versioning ("1.0.0-rc.1+linux").
func ValidVersion(version string) bool { return versionPattern.MatchString(version) }

var versionPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)

// Logger returns the plugin's logger. Its lines go to the host's log.
func (p *Plugin) Logger() *slog.Logger { return p.logger }

// Tools returns the tools that the plugin has now, in the order in which they
// were added.
func (p *Plugin) Tools() []tool.Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	return specs(p.tools)
}

// lookup returns the tool with the given name, or nil. The host never sends an
// alias.
func (p *Plugin) lookup(name string) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.tools, func(e *entry) bool { return e.spec.Name == name })
	if i < 0 {
		return nil
	}
	return p.tools[i]
}

func specs(entries []*entry) []tool.Spec {
	list := make([]tool.Spec, len(entries))
	for i, e := range entries {
		list[i] = e.spec
	}
	return list
}
