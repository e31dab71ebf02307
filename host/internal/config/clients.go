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
		clients = append(clients, client)
	}
	return clients
}
