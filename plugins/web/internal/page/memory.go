//go:build !race

package page

import "github.com/toolhost/toolhost/sdk/tool"

// childMemory bounds the process that reads one document.
const childMemory = 320 * tool.MiB
