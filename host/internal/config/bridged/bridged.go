// Package bridged writes the plugin blocks of MCP servers into a configuration, and takes them out
// again. It changes nothing else of the file: comments and other blocks stay byte by byte.
package bridged

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
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
	// Env are variables of the server's environment, Headers those of requests to a URL. A value may
	// contain {{secret:NAME}}, the value of a secret block, and {{env:NAME}}, a variable of the host.
	Env, Headers map[string]string
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

// Secret is a secret block whose value is in a file.
type Secret struct{ Name, File string }

// Block returns the text of the server's plugin block, after those of the secrets.
func Block(s Server, secrets []Secret) string {
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
func setMap(body *hclwrite.Body, name string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	var fields []hclwrite.ObjectAttrTokens
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name := hclwrite.TokensForValue(cty.StringVal(key))
		if hclsyntax.ValidIdentifier(key) {
			name = hclwrite.TokensForIdentifier(key)
		}
		fields = append(fields, hclwrite.ObjectAttrTokens{Name: name, Value: expression(values[key])})
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

// Remove returns an edit that takes a plugin block out of a file, with the comment above it.
// The edit returns [ErrNone] if there is none.
func Remove(name string) func(old []byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) {
		file, diags := hclwrite.ParseConfig(old, "", hcl.InitialPos)
		if diags.HasErrors() {
			return nil, diags
		}
		block := file.Body().FirstMatchingBlock("plugin", []string{name})
		if block == nil {
			return nil, ErrNone
		}
		text := string(old)
		whole := string(block.BuildTokens(nil).Bytes()) // with the comment above
		at := strings.Index(text, whole)
		if at < 0 || strings.Count(text, whole) > 1 {
			return nil, fmt.Errorf("the block of plugin %q cannot be told apart: remove it by hand", name)
		}
		before, after := strings.TrimRight(text[:at], "\n"), strings.TrimLeft(text[at+len(whole):], "\n")
		switch {
		case before == "":
			return []byte(after), nil
		case after == "":
			return []byte(before + "\n"), nil
		}
		return []byte(before + "\n\n" + after), nil
	}
}

// IsBridge reports whether a plugin program, by its path, is the one that runs MCP servers.
func IsBridge(path string) bool { return filepath.Base(path) == Program }
