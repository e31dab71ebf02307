// Package bridged writes the plugin blocks of MCP servers into a configuration, and takes them out
// again. It changes nothing else of the file: comments and other blocks stay byte by byte.
package bridged

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Program is the name of the plugin program that runs MCP servers, in the directory of plugins.
const Program = "mcp"

// Server is an MCP server as its plugin block describes it.
type Server struct {
	// Name is the name of the block.
	Name string
	// Comment is one line above the block: where the server is from.
	Comment string
	// Command starts the server; URL is its address. One of them is set.
	Command []string
	URL     string
	// Dir is the working directory of the command; "" is the workspace.
	Dir string
	// Env are variables of the server's environment, Headers those of requests to a URL.
	Env, Headers map[string]Value
	// Read and Exec are what it may read and execute besides the workspace.
	Read, Exec []string
	// Workspace is "none", "ro" or "rw".
	Workspace string
	// Network is "none" or "proxy". Hosts are allowed; Ask lets a person decide about others.
	Network string
	Hosts   []string
	Ask     bool
	// Tier is the ceiling of its tools. SplitTiers runs those that only read in a process that can
	// change nothing, unasked.
	Tier       tool.Tier
	SplitTiers bool
}

// SecretBlock is a secret block whose value is in a file.
type SecretBlock struct{ Name, File string }

// Block returns the text of the server's plugin block, after those of the secrets.
func Block(s Server, secrets []SecretBlock) string {
	file := hclwrite.NewEmptyFile()
	body := file.Body()
	for _, secret := range secrets {
		block := body.AppendNewBlock("secret", []string{secret.Name}).Body()
		block.SetAttributeRaw("value", call("file", secret.File))
	}
	if len(secrets) > 0 {
		body.AppendNewline()
	}
	if s.Comment != "" {
		body.AppendUnstructuredTokens(hclwrite.Tokens{{Type: hclsyntax.TokenComment, Bytes: []byte("# " + tool.VisibleName(s.Comment) + "\n")}})
	}
	plugin := body.AppendNewBlock("plugin", []string{s.Name}).Body()
	plugin.SetAttributeValue("path", cty.StringVal(Program))
	plugin.SetAttributeValue("tier", cty.StringVal(s.Tier.String()))
	if s.SplitTiers {
		plugin.SetAttributeValue("split_tiers", cty.True)
	}
	plugin.AppendNewline()
	config := plugin.AppendNewBlock("config", nil).Body()
	if s.URL != "" {
		config.SetAttributeValue("url", cty.StringVal(s.URL))
	} else {
		config.SetAttributeValue("command", texts(s.Command))
	}
	if s.Dir != "" {
		config.SetAttributeValue("dir", cty.StringVal(s.Dir))
	}
	setMap(config, "env", s.Env)
	setMap(config, "headers", s.Headers)
	sandbox := plugin.AppendNewBlock("sandbox", nil).Body()
	if len(s.Command) > 0 { // node and python reserve more than a plugin of ours
		limits := sandbox.AppendNewBlock("limits", nil).Body()
		limits.SetAttributeValue("memory", cty.StringVal("4GiB"))
		limits.SetAttributeValue("open_files", cty.NumberIntVal(1024))
	}
	files := sandbox.AppendNewBlock("filesystem", nil).Body()
	files.SetAttributeValue("workspace", cty.StringVal(s.Workspace))
	setList(files, "read", s.Read)
	setList(files, "exec", s.Exec)
	network := sandbox.AppendNewBlock("network", nil).Body()
	network.SetAttributeValue("mode", cty.StringVal(s.Network))
	setList(network, "allow", s.Hosts)
	if s.Ask {
		network.SetAttributeValue("ask", cty.True)
	}
	return string(hclwrite.Format(file.Bytes()))
}

func setList(body *hclwrite.Body, name string, values []string) {
	if len(values) > 0 {
		body.SetAttributeValue(name, texts(values))
	}
}

func texts(values []string) cty.Value {
	var all []cty.Value
	for _, v := range values {
		all = append(all, cty.StringVal(v))
	}
	return cty.ListVal(all)
}

// setMap sets an attribute to an object of texts, one on each line.
func setMap(body *hclwrite.Body, name string, values map[string]Value) {
	if len(values) == 0 {
		return
	}
	var fields []hclwrite.ObjectAttrTokens
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name := hclwrite.TokensForValue(cty.StringVal(key))
		if isName(key) {
			name = hclwrite.TokensForIdentifier(key)
		}
		fields = append(fields, hclwrite.ObjectAttrTokens{Name: name, Value: values[key].tokens()})
	}
	body.SetAttributeRaw(name, hclwrite.TokensForObject(fields))
}

// Append returns an edit that adds a block at the end of a file.
func Append(block string) func(old []byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) {
		text := bytes.TrimRight(old, "\n")
		if len(text) > 0 {
			text = append(text, "\n\n"...)
		}
		return append(text, block...), nil
	}
}

// ErrNone means that a file has no block of a name.
var ErrNone = errors.New("the file has no such plugin block")

// Remove returns an edit that takes a plugin block out of a file, with the comment above it, and the
// secret blocks with the given names. The edit returns [ErrNone] if there is no such plugin.
func Remove(name string, secrets ...string) func(old []byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) {
		text, err := cutBlock(old, "plugin", name)
		if err != nil {
			return nil, err
		}
		for _, secret := range secrets {
			without, err := cutBlock(text, "secret", secret)
			switch {
			case err == nil:
				text = without
			case !errors.Is(err, ErrNone):
				return nil, err
			}
		}
		return text, nil
	}
}

// cutBlock takes a block out of a file, with the comment above it.
func cutBlock(old []byte, kind, name string) ([]byte, error) {
	at, end, err := extent(old, kind, name)
	if err != nil {
		return nil, err
	}
	before, after := bytes.TrimRight(old[:at], "\n"), bytes.TrimLeft(old[end:], "\n")
	switch {
	case len(before) == 0:
		return after, nil
	case len(after) == 0:
		return append(bytes.Clone(before), '\n'), nil
	}
	return slices.Concat(before, []byte("\n\n"), after), nil
}

// extent returns where a block is in a file, with the comment above it.
func extent(text []byte, kind, name string) (at, end int, err error) {
	file, diags := hclwrite.ParseConfig(text, "", hcl.InitialPos)
	if diags.HasErrors() {
		return 0, 0, diags
	}
	block := file.Body().FirstMatchingBlock(kind, []string{name})
	if block == nil {
		return 0, 0, ErrNone
	}
	whole := block.BuildTokens(nil).Bytes()
	if bytes.Count(text, whole) != 1 {
		return 0, 0, fmt.Errorf("the block of %s %q cannot be told apart: change it by hand", kind, name)
	}
	at = bytes.Index(text, whole)
	return at, at + len(whole), nil
}

// Replace returns an edit of one plugin block: its program, the file below the directory from, becomes
// program, and that directory becomes to. comment replaces words of the comment above it.
func Replace(name, from, to, program string, comment *strings.Replacer) func(old []byte) ([]byte, error) {
	inside := regexp.MustCompile(`"` + regexp.QuoteMeta(from) + `/[^"]*"`)
	return func(old []byte) ([]byte, error) {
		at, end, err := extent(old, "plugin", name)
		if err != nil {
			return nil, err
		}
		quoted := string(hclwrite.TokensForValue(cty.StringVal(program)).Bytes())
		block := inside.ReplaceAllLiteralString(string(old[at:end]), quoted)
		block = strings.ReplaceAll(block, `"`+from+`"`, `"`+to+`"`)
		return slices.Concat(old[:at], []byte(comment.Replace(block)), old[end:]), nil
	}
}

// IsBridge reports whether a plugin program, by its path, is the one that runs MCP servers.
func IsBridge(path string) bool { return filepath.Base(path) == Program }
