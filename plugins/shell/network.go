package main

import (
	"net"
	"regexp"
	"slices"
)

// unreached matches what programs say when they cannot reach another machine.
var unreached = regexp.MustCompile(`(?i)(could not resolve|couldn't resolve|name resolution|failure resolving|network is unreachable|` +
	`no such host|name or service not known|nodename nor servname|unknown host|EAI_AGAIN|ENOTFOUND|ENETUNREACH|dial tcp: lookup|dial udp .*: connect)`)

// noNetwork is the hint for a command that needed one.
const noNetwork = "commands have no network here: use what is installed and in the workspace, or ask the user to fetch it"

// offline reports whether commands have no network but that of this machine, as in a sandbox
// without network.
func offline() bool {
	all, err := net.Interfaces()
	return err == nil && !slices.ContainsFunc(all, func(i net.Interface) bool { return i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 })
}

// missedNetwork reports whether the end of the output says that the command reached no network.
func (o *outcome) missedNetwork() bool {
	const most = 16 << 10
	for _, c := range [][]byte{o.Stderr.Head, o.Stderr.Tail, o.Stdout.Tail, o.Stdout.Head} {
		if unreached.Match(c[max(0, len(c)-most):]) {
			return true
		}
	}
	return false
}
