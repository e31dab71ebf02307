package daemon

import (
	"fmt"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// full returns why the workspace of a user is full, or "". What it holds was measured some time ago.
func (d *Daemon) full(user string) string {
	quota := d.config.Load().WorkspaceQuota
	if quota == 0 {
		return ""
	}
	held := d.parts.usage.Of(user)
	if held.Size <= quota {
		return ""
	}
	least := ""
	if held.AtLeast {
		least = "at least "
	}
	rounded := (held.Size + tool.MiB - 1) / tool.MiB * tool.MiB
	return fmt.Sprintf("the workspace held %s%v %v ago, and may hold %v: files in it must be deleted",
		least, rounded, time.Since(held.At).Round(time.Second), quota)
}
