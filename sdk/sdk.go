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
	onStop   []func()

	onSessionEnd []func(session string)

	stopping sync.Mutex // held by Stop; taken before mu
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
// then on goes to standard error. It takes standard input, too, whose end says
// that the host is gone: whoever reads it finds it empty. Such a process serves
// one plugin.
func New(name, version string) *Plugin {
	p := &Plugin{name: name, version: version, logger: newLogger(name), names: map[string]string{}}
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

// ValidVersion reports whether version can be a plugin's: three numbers, and
// perhaps what semantic versioning allows after them ("1.0.0-rc.1+linux").
func ValidVersion(version string) bool { return versionPattern.MatchString(version) }

var versionPattern = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`)

// Logger returns the plugin's logger. Its lines go to the host's log.
func (p *Plugin) Logger() hclog.Logger { return p.logger }

// WantSecrets says which secrets the plugin would like to ask for with
// [Call.Secret]. The administrator grants them by name: a letter or digit, then
// up to 63 letters, digits, "_", "-" and ".". To name one again changes nothing.
func (p *Plugin) WantSecrets(names ...string) {
	for _, name := range names {
		if !secretPattern.MatchString(name) {
			p.mistake("", "", "the name %q of a secret is not valid: expected a letter or digit, then up to 63 letters, digits, _, - and .", name)
			continue
		}
		p.mu.Lock()
		if !slices.Contains(p.secrets, name) {
			p.secrets = append(p.secrets, name)
		}
		p.mu.Unlock()
	}
}

var secretPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

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
