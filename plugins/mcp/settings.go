package main

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agext/levenshtein"
	"golang.org/x/net/http/httpguts"

	"github.com/toolhost/toolhost/plugins/mcp/internal/definition"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

// settings is the config block of the plugin.
type settings struct {
	Command []string          `json:"command,omitempty" jsonschema:"the server's program and its arguments; either this or url"`
	URL     string            `json:"url,omitempty" jsonschema:"the address of a server with streamable HTTP; either this or command"`
	Env     map[string]string `json:"env,omitempty" jsonschema:"variables for the program, besides PATH, HOME, TMPDIR, LANG and those of the proxy"`
	Headers map[string]string `json:"headers,omitempty" jsonschema:"headers for each request to url, such as Authorization"`
	Dir     string            `json:"dir,omitempty" jsonschema:"working directory of the program, an absolute path; default is the workspace, or the plugin's state directory without one"`

	Prefix     *string                      `json:"prefix,omitempty" jsonschema:"how the names of tools begin; default is the name of the plugin's block, and an empty prefix leaves the server's names"`
	Roles      map[string]map[string]string `json:"roles,omitempty" jsonschema:"roles of arguments, so that rules for paths, commands and URLs apply to them: the server's name of a tool, of an argument, and the role"`
	Idempotent []string                     `json:"idempotent,omitempty" jsonschema:"the server's names of tools that may be called again if it is not known whether a call had its effect; the server must claim it, too"`

	StartTimeout time.Duration `json:"start_timeout,omitempty" jsonschema:"how long the server may take to start and to list its tools" min:"100ms" max:"9s" default:"8s"`
	CallTimeout  time.Duration `json:"call_timeout,omitempty" jsonschema:"default time-out of a call; 0 means the host's" min:"0s" max:"24h"`
	MaxMessage   tool.ByteSize `json:"max_message,omitempty" jsonschema:"the largest message of the server; a larger one ends it" min:"64KiB" max:"256MiB" default:"32MiB"`
}

// mistake returns a mistake in one setting.
func mistake(path []string, format string, args ...any) error {
	return &sdk.SettingError{Path: path, Summary: strings.Join(path, ": ") + " " + fmt.Sprintf(format, args...)}
}

// mistakes returns all errors in the settings that can be found without the server.
func (s *settings) mistakes(noNetwork bool) (wrong []error) {
	add := func(path []string, format string, args ...any) { wrong = append(wrong, mistake(path, format, args...)) }
	switch {
	case len(s.Command) == 0 && s.URL == "":
		add([]string{"command"}, "is missing: set command or url")
	case len(s.Command) > 0 && s.URL != "":
		add([]string{"url"}, "is set besides command: a server has one of them")
	case len(s.Command) > 0:
		wrong = append(wrong, s.commandMistakes()...)
	default:
		wrong = append(wrong, s.urlMistakes(noNetwork)...)
	}
	if s.Prefix != nil && *s.Prefix != "" && (!tool.ValidName(*s.Prefix) || len(*s.Prefix) > definition.MaxPrefix) {
		add([]string{"prefix"}, "is %q, expected a lower-case letter, then up to %d of a-z, 0-9 and _", display.Visible(*s.Prefix), definition.MaxPrefix-1)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Roles)) {
		for argument, role := range s.Roles[name] {
			if !tool.Role(role).Valid() {
				add([]string{"roles", name, argument}, "is %q, expected one of %s", display.Visible(role), joined(tool.Roles()))
			}
		}
	}
	return wrong
}

func (s *settings) commandMistakes() (wrong []error) {
	if s.Command[0] == "" {
		wrong = append(wrong, mistake([]string{"command", "0"}, "is empty, expected a program"))
	}
	for i, word := range s.Command {
		if hasNUL(word) {
			wrong = append(wrong, mistake([]string{"command", fmt.Sprint(i)}, "contains a NUL byte"))
		}
	}
	if len(s.Headers) > 0 {
		wrong = append(wrong, mistake([]string{"headers"}, "is for servers with a url"))
	}
	if s.Dir != "" && (!filepath.IsAbs(s.Dir) || hasNUL(s.Dir)) {
		wrong = append(wrong, mistake([]string{"dir"}, "is %q, expected an absolute path", display.Visible(s.Dir)))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		switch {
		case !validVariable(name):
			wrong = append(wrong, mistake([]string{"env", name}, "is a variable that a server may not be given: it makes programs load or run something else, or belongs to the host"))
		case hasNUL(s.Env[name]):
			wrong = append(wrong, mistake([]string{"env", name}, "contains a NUL byte"))
		}
	}
	return wrong
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// validVariable reports whether a server may be given a variable.
func validVariable(name string) bool {
	ofHost := strings.HasPrefix(name, "PLUGIN_") || strings.HasPrefix(name, "TOOLHOST_")
	return variableName.MatchString(name) && !ofHost && !protect.Variable(name)
}

// ownHeaders are headers that the protocol sets.
var ownHeaders = []string{"accept", "connection", "content-length", "content-type", "host", "last-event-id", "proxy-authorization", "transfer-encoding"}

func (s *settings) urlMistakes(noNetwork bool) (wrong []error) {
	at, err := url.Parse(s.URL)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http":
		return []error{mistake([]string{"url"}, "is not an address such as https://mcp.example.com/mcp")}
	case at.User != nil:
		wrong = append(wrong, mistake([]string{"url"}, "holds a user or password; set headers = { Authorization = ... } instead"))
	case noNetwork:
		wrong = append(wrong, mistake([]string{"url"}, `needs a network: add network { mode = "proxy" } with the server's host to the sandbox block`))
	case at.Scheme == "http" && len(s.Headers) > 0 && !loopback(at.Hostname()):
		wrong = append(wrong, &sdk.SettingError{Path: []string{"url"}, Warning: true, Summary: "url is http: anyone on the way to the server can read the headers"})
	}
	for _, unused := range []struct {
		name string
		set  bool
	}{{"env", len(s.Env) > 0}, {"dir", s.Dir != ""}} {
		if unused.set {
			wrong = append(wrong, mistake([]string{unused.name}, "is for servers with a command"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		lower := strings.ToLower(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			wrong = append(wrong, mistake([]string{"headers", name}, "is not the name of a header"))
		case slices.Contains(ownHeaders, lower) || strings.HasPrefix(lower, "mcp-"):
			wrong = append(wrong, mistake([]string{"headers", name}, "is a header that the protocol sets"))
		case !httpguts.ValidHeaderFieldValue(s.Headers[name]):
			wrong = append(wrong, mistake([]string{"headers", name}, "has a value with characters that a header cannot have"))
		}
	}
	return wrong
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// toolMistakes returns the names of tools and arguments in the settings that the server does not have.
func (s *settings) toolMistakes(tools []definition.Tool) (wrong []error) {
	known := make([]string, len(tools))
	for i, t := range tools {
		known[i] = t.Original
		if t.Role != nil {
			wrong = append(wrong, mistake([]string{"roles", t.Original, t.Role.Argument}, "is not an argument of the tool; %s", expected(t.Role.Argument, t.Role.Known)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Roles)) {
		if !slices.Contains(known, name) {
			wrong = append(wrong, mistake([]string{"roles", name}, "is not a tool of the server; %s", expected(name, known)))
		}
	}
	for i, name := range s.Idempotent {
		if !slices.Contains(known, name) {
			wrong = append(wrong, mistake([]string{"idempotent", fmt.Sprint(i)}, "%q is not a tool of the server; %s", display.Visible(name), expected(name, known)))
		}
	}
	return wrong
}

// expected lists the known names that are nearest to a name.
func expected(name string, known []string) string {
	if len(known) == 0 {
		return "it has none"
	}
	near := slices.Clone(known)
	slices.SortStableFunc(near, func(a, b string) int {
		return levenshtein.Distance(short(a), short(name), nil) - levenshtein.Distance(short(b), short(name), nil)
	})
	return "expected one of " + display.Names(near)
}

// short bounds the work of comparing names that a server has chosen.
func short(name string) string { return display.Head(name, 100) }

func joined(roles []tool.Role) string {
	names := make([]string, len(roles))
	for i, role := range roles {
		names[i] = string(role)
	}
	return strings.Join(names, ", ")
}

func hasNUL(text string) bool { return strings.ContainsRune(text, 0) }

// secrets returns the values in the settings that no log and no error shows.
func (s *settings) secrets() (values []string) {
	for _, value := range s.Env {
		values = append(values, value)
	}
	for _, value := range s.Headers {
		values = append(values, value)
		values = append(values, strings.Fields(value)...) // "Bearer" and the token
	}
	if at, err := url.Parse(s.URL); err == nil {
		for _, list := range at.Query() {
			values = append(values, list...)
		}
	}
	values = slices.DeleteFunc(values, func(value string) bool { return len(value) < minSecret })
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // the longest first, as one may hold another
	return values
}

// secretNames are parts of the names of variables that hold secrets.
var secretNames = regexp.MustCompile(`(?i)token|key|secret|passw|auth|cred|cookie|session|dsn|pat$`)

// credentials returns the secrets that no result shows either: headers, and the variables whose names
// say that they are secret. Other variables, such as paths, belong into results.
func (s *settings) credentials() []string {
	named := settings{Env: map[string]string{}, Headers: s.Headers}
	for name, value := range s.Env {
		if secretNames.MatchString(name) {
			named.Env[name] = value
		}
	}
	return named.secrets()
}

// minSecret is the length below which hiding a value would hide ordinary words.
const minSecret = 8
