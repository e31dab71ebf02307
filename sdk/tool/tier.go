package tool

import (
	"fmt"
	"slices"
	"strings"
)

// Tier is the harm that a call can do. A greater tier can do more harm. The zero
// Tier is not valid.
type Tier int

const (
	// ReadOnly changes nothing. Such calls may run in parallel and without
	// approval.
	ReadOnly Tier = iota + 1
	// SideEffecting makes changes that can be seen and undone.
	SideEffecting
	// Privileged may do lasting damage, or anything.
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

// ParseTier returns the Tier with the given name; see [Tier.String].
func ParseTier(s string) (Tier, error) {
	i := slices.Index(tierNames, s)
	if i < 0 {
		return 0, fmt.Errorf("unknown tier %q, expected one of %s", s, strings.Join(tierNames, ", "))
	}
	return ReadOnly + Tier(i), nil
}

// MarshalText implements [encoding.TextMarshaler]. It fails for an invalid Tier.
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
