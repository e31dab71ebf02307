package config

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Client is a client block: how a client of MCP that gives itself this name gets its
// results.
type Client struct {
	Name string
	// MaxOutput is the maximum text in one result, from 4 KiB to 46 KiB; 0 means the limit that
	// the host knows for the client.
	MaxOutput tool.ByteSize
	// Structured means that it gets structured results besides texts.
	Structured bool
	// ToolSearchAbove replaces [Config.ToolSearchAbove]; 0 does not.
	ToolSearchAbove int
}

const (
	// maxClientName is how much of a client's name the host reads.
	maxClientName   = 100
	minClientOutput = 4 * tool.KiB
	maxClientOutput = 46 * tool.KiB
)

// clients reads the client blocks.
func (d *decoder) clients(blocks []clientBlock) (clients []Client) {
	firsts := make(map[string]hcl.Range)
	for _, block := range blocks {
		d.unique("client", block.Name, block.NameRange, firsts)
		if !isLabel(block.Name, maxClientName) {
			d.mistake(block.NameRange, "Invalid client name",
				"This is the name that the client gives itself, its clientInfo.name. Expected 1 to %d bytes of visible characters, without space around them.", maxClientName)
		}
		client := Client{Name: block.Name, Structured: d.flag(block.Structured, false)}
		client.MaxOutput, _ = d.sizeWithin(block.MaxOutput, minClientOutput, maxClientOutput, `a size from "4KiB" to "46KiB"`)
		client.ToolSearchAbove = d.toolSearch(block.ToolSearchAbove, 0)
		clients = append(clients, client)
	}
	return clients
}

const (
	// defaultToolSearch is more than the plugins of the default configuration have together.
	defaultToolSearch = 100
	maxToolSearch     = 100_000
)

// toolSearch reads the number of tools above which a list has only the core tools.
func (d *decoder) toolSearch(attr *hcl.Attribute, otherwise int) int {
	const expected = "a number of tools from 1 to 100000"
	n, ok := d.count(attr, 1, expected)
	switch {
	case !ok:
		return otherwise
	case n > maxToolSearch:
		d.mistake(attr.Expr.Range(), "Out of range", "Expected %s for %s.", expected, attr.Name)
		return otherwise
	}
	return int(n)
}
