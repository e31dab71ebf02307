//go:build !linux

package sandbox

import "context"

// place is where something is that a program must not change.
type place struct{}

func (*plan) places() []place { return nil }

// Exposed returns nothing: nothing keeps a program from changing a file here.
func (*Process) Exposed() []string { return nil }

// Reprotect returns nothing: nothing is exposed.
func (*Process) Reprotect(context.Context, []string) (still []string) { return nil }

// FileID tells files apart.
type FileID struct{}

// Identify returns the zero value.
func Identify(string) FileID { return FileID{} }
