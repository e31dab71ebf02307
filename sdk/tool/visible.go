package tool

import "github.com/toolhost/toolhost/sdk/display"

// Visible is [display.Visible].
func Visible(text string) string { return display.Visible(text) }

// VisibleName is [display.VisibleName].
func VisibleName(name string) string { return display.VisibleName(name) }
