//go:build !race

package page

import "github.com/toolhost/toolhost/sdk/tool"

// childMemory is the memory limit of the process that converts one document.
const childMemory = 320 * tool.MiB
