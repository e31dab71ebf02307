// Package reaper is the process between a plugin and one command. The plugin executes itself
// again as a reaper, which starts the command, becomes the parent of all processes that the
// command leaves behind, and kills them. If nothing is left of the command, the reaper can run
// another one: starting a reaper takes longer than starting most programs.
//
// A package initializer enters it, so that no plugin's main has to call it and none of the
// plugin's own code runs first. Go initializes packages in the order of their import paths as
// soon as their imports are initialized: a package with few imports is early. So it must not
// import a package with many.
package reaper

// Name is the whole command line of a reaper. Arguments of a plugin cannot make
// it one.
const Name = "toolhost-reaper"

// The reaper's descriptors after standard input, output and error, which it does not use.
const (
	// ControlFD is a socket. It carries the order, with the command's files attached to its
	// first byte ([Send]), and then signals for the command, one byte each, and [Spare]. Its end
	// is the order to kill everything. A reaper may wait for its order for as long as the plugin
	// lives.
	ControlFD = 3
	// ReportFD takes reports, one line each.
	ReportFD = 4
)

// Spare takes the place of a signal. The processes that the command leaves are then not killed
// at its end: they have time to end by themselves, until the socket ends.
const Spare = 0

// MaxFiles is how many files a command can have in addition to its standard input, output and
// error.
const MaxFiles = 16
