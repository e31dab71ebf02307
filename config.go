// Package toolhost holds the default configuration.
package toolhost

import _ "embed" // for Config

// Config is the text of config.hcl.
//
//go:embed config.hcl
var Config string
