// Package sdk serves tools to a toolhost. A plugin is a program that makes a
// [Plugin] with [New], adds tools with [AddTool] and calls [Plugin.Serve].
//
// A tool is a function from a struct to a result. The JSON Schema that a model
// sees comes from the struct, so it cannot disagree with the code. Mistakes in
// a tool are told by name when the plugin starts. The sdk carries errors,
// panics, progress and output to the host; a tool that prints to standard
// output, fails or panics never harms the calls beside it.
package sdk

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Plugin is a set of tools that a host can call. Make it with [New].
type Plugin struct {
	name, version string
	logger        hclog.Logger
	proxy         atomic.Pointer[url.URL]
	httpClient    *http.Client
	host          connection

	mu       sync.Mutex // guards everything below
	tools    []*entry
	names    map[string]string // name or alias -> the tool's name
	mistakes []error
	secrets  []string
	settings *settings
	static   int  // tools that do not depend on the settings
	sealed   bool // tools can no longer be added
}

// entry is one tool and what runs it.
type entry struct {
	spec    tool.Spec
	run     func(context.Context, *Call, json.RawMessage) (tool.Result, error)
	preview func(context.Context, *Call, json.RawMessage) (tool.Preview, error) // nil: none
}

// New returns a plugin without tools. The name must be that of the plugin's
// block in the host's configuration ([tool.ValidPluginName]); the version is
// semantic ("1.0.0"). [Plugin.Err] and [Plugin.Serve] report if they are not.
//
// In a process that a host started, New also takes standard output away from
// the program, since the host reads one line from it: whatever is printed from
// then on goes to standard error. Such a process serves one plugin.
func New(name, version string) *Plugin {
	p := &Plugin{name: name, version: version, logger: newLogger(name), names: map[string]string{}}
	p.httpClient = newHTTPClient(&p.proxy)
	if startedByHost() {
		// Serve reports the error; until then nothing depends on it.
		_, _ = claimStdout()
	}
	if !tool.ValidPluginName(name) {
		p.mistake("", "", "the plugin's name %q is not valid: expected a lower-case letter, then up to 63 of a-z, 0-9, _ and -", name)
	}
	if !versionPattern.MatchString(version) {
		p.mistake("", "", "the plugin's version %q is not valid: expected a semantic version such as \"1.0.0\"", version)
	}
	return p
}

var versionPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)

// Logger returns the plugin's logger. Its lines go to the host's log.
func (p *Plugin) Logger() hclog.Logger { return p.logger }

// WantSecrets says which secrets the plugin would like to ask for with
// [Call.Secret]. The administrator grants them by name.
func (p *Plugin) WantSecrets(names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secrets = append(p.secrets, names...)
}

// Tools returns what the plugin offers now, in the order of [AddTool].
func (p *Plugin) Tools() []tool.Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	return specs(p.tools)
}

// lookup returns the tool with the given name, or nil. Aliases are the host's
// matter: it always sends the name.
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
