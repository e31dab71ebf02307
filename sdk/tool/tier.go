package tool

import (
	"fmt"
	"slices"
	"strings"
)

// Tier says how much harm a call can do. Tiers are ordered: a greater one can
// do more. The zero Tier is not valid.
type Tier int

const (
	// ReadOnly changes nothing; such calls may run in parallel, unasked.
	ReadOnly Tier = iota + 1
	// SideEffecting changes something that can be seen and mended.
	SideEffecting
	// Privileged may do lasting damage, or anything at all.
	Privileged
)

var tierNames = []string{"read_only", "side_effecting", "privileged"}

// String returns the name used in configuration, JSON and messages.
func (t Tier) String() string {
	if t < ReadOnly || t > Privileged {
		return fmt.Sprintf("Tier(%d)", int(t))
	}
	return tierNames[t-ReadOnly]
}

// ParseTier is the inverse of [Tier.String].
func ParseTier(s string) (Tier, error) {
	i := slices.Index(tierNames, s)
	if i < 0 {
		return 0, fmt.Errorf("unknown tier %q, expected one of %s", s, strings.Join(tierNames, ", "))
	}
	return ReadOnly + Tier(i), nil
}

// MarshalText implements [encoding.TextMarshaler]. It fails for a Tier that is
// not valid.
func (t Tier) MarshalText() ([]byte, error) {
	if t < ReadOnly || t > Privileged {
		return nil, fmt.Errorf("tier %d is not valid", int(t))
	}
	return []byte(t.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *Tier) UnmarshalText(text []byte) error {
	parsed, err := ParseTier(string(text))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}
