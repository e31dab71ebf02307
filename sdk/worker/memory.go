//go:build !race

package worker

import "github.com/toolhost/toolhost/sdk/tool"

// Memory is the memory limit of a process.
const Memory = 320 * tool.MiB
