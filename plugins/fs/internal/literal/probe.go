package literal

import (
	"math"
	"strings"
)

// probe is a byte that some literals have in common. A search looks for it, and compares
// the literals only there.
type probe struct {
	small, large byte // its spellings
	needles      []needle
}

// needle is a literal with the place of its probe, and of another byte that is compared
// before the whole.
type needle struct {
	Literal
	at, guard int
}

func newNeedle(l Literal, at int) needle {
	n := needle{Literal: l, at: at}
	for i := range l.Text {
		if i != at && (n.guard == at || frequency(l.Text[i]) < frequency(l.Text[n.guard])) {
			n.guard = i
		}
	}
	return n
}

// Figures of a search, in nanoseconds; only their proportions matter.
const (
	perPass  = 0.04 // each byte, for each spelling of each probe
	perPlace = 10   // each place of a probe
)

// cost estimates the cost of a search for the probe for each byte of text.
func (p probe) cost() float64 {
	if p.small == p.large {
		return perPass + frequency(p.small)*perPlace
	}
	return 2*perPass + (frequency(p.small)+frequency(p.large))*perPlace
}

// probesCost is the cost of several probes.
func probesCost(all []probe) float64 {
	sum := 0.0
	for _, p := range all {
		sum += p.cost()
	}
	return sum
}

// probes chooses the bytes to look for: rare ones, and bytes that several literals share. No
// literal is empty.
func probes(literals []Literal) []probe {
	var chosen []probe
	for left := literals; len(left) > 0; {
		var best probe
		for _, l := range left {
			for i := range l.Text {
				p := probe{small: l.Text[i], large: l.Text[i]}
				if l.Fold {
					p.large = upper(p.small)
				}
				for _, other := range left {
					if at, ok := p.in(other); ok {
						p.needles = append(p.needles, newNeedle(other, at))
					}
				}
				if best.needles == nil || p.cost()/float64(len(p.needles)) < best.cost()/float64(len(best.needles)) {
					best = p
				}
			}
		}
		chosen = append(chosen, best)
		var rest []Literal
		for _, l := range left {
			if _, ok := best.in(l); !ok {
				rest = append(rest, l)
			}
		}
		left = rest
	}
	return chosen
}

// in returns the place of the probe in a literal.
func (p probe) in(l Literal) (at int, ok bool) {
	at = strings.IndexByte(l.Text, p.small)
	return at, at >= 0 && (p.small != p.large) == (l.Fold && upper(p.small) != p.small)
}

// common are the bytes of source code and prose, the most frequent first.
const common = " etnsiroa_\ncld\tpfu/,hS()m.Eg0TIbyONR\"C1*AL:xPk=2v-wDF3>M<'4X5{}U6#9GB8;VH7[]\\Y`KzWjq+&!%|Q$J@Z?~^"

// frequency estimates how often a byte occurs in source code or prose.
func frequency(c byte) float64 {
	rank := float64(strings.IndexByte(common, c))
	if rank < 0 {
		return 0.0003
	}
	return 0.035*math.Exp(-rank/10) + 0.02*math.Exp(-rank/28)
}
