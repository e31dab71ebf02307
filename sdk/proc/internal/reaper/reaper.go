// Package reaper is the process that stands between a plugin and one command:
// the plugin executes itself anew as a reaper, which starts the command, becomes
// the parent of everything that the command leaves behind, and kills it. It
// lives as long as something of the command does.
//
// A package initializer enters it, so that no plugin's main has to call it and none of the
// plugin's own code runs first. Go initializes packages in the order of their import paths as
// soon as their imports are initialized: a package with few imports is early. So it must not
// import a package with many.
package reaper

// Name is the whole command line of a reaper. Arguments of a plugin cannot make
// it one.
const Name = "toolhost-reaper"

// The reaper's descriptors after standard input, output and error, which it does
// not use.
const (
	// ControlFD is a socket. It brings the order, with the command's files beside
	// its first byte ([Send]), and then signals for the command, one byte each, and
	// [Spare]. Its end means that everything is to be killed. A reaper may wait for its
	// order for as long as the plugin lives.
	ControlFD = 3
	// ReportFD takes reports, one line each.
	ReportFD = 4
)

// Spare stands in the place of a signal. What the command leaves at its end is then
// not killed: it has time to end by itself, until the socket ends.
const Spare = 0

// MaxFiles is how many files a command can have beside its standard input, output and
// error.
const MaxFiles = 16
