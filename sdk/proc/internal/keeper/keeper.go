// Package keeper is the process that stands between a plugin and one command:
// the plugin executes itself anew as a keeper, which starts the command, becomes
// the parent of everything that the command leaves behind, and kills it. It
// lives as long as something of the command does.
//
// It is entered by a package initialiser, so that no plugin's main has to call
// it and none of the plugin's own code runs first. Go initialises packages in
// the order of their import paths as soon as what they import is initialised: a
// package that imports little is early. It must not import anything that is not.
package keeper

// Name is the whole command line of a keeper. Arguments of a plugin cannot make
// it one.
const Name = "toolhost-keeper"

// The keeper's descriptors after standard input, output and error, which are
// the command's.
const (
	// ControlFD brings the order, and then signals for the command, one byte
	// each. Its end means that everything is to be killed.
	ControlFD = 3
	// ReportFD takes reports, one line each.
	ReportFD = 4
)
