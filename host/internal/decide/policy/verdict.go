package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is the decision about a call. Larger verdicts are stricter; the zero Verdict is not one.
type Verdict int

const (
	// Allow runs the call without asking.
	Allow Verdict = iota + 1
	// Ask asks a person, unless one has given a standing answer.
	Ask
	// Confirm asks a person each time.
	Confirm
	// Deny refuses the call.
	Deny
)

var verdictNames = []string{"allow", "ask", "confirm", "deny"}

// String returns the name used in configuration, JSON and messages.
func (v Verdict) String() string {
	if v < Allow || v > Deny {
		return fmt.Sprintf("Verdict(%d)", int(v))
	}
	return verdictNames[v-Allow]
}

// ParseVerdict is the inverse of [Verdict.String].
func ParseVerdict(s string) (Verdict, error) {
	i := slices.Index(verdictNames, s)
	if i < 0 {
		return 0, fmt.Errorf("unknown verdict %q, expected one of %s", s, strings.Join(verdictNames, ", "))
	}
	return Allow + Verdict(i), nil
}

// MarshalText implements [encoding.TextMarshaler]. It fails for an invalid verdict.
func (v Verdict) MarshalText() ([]byte, error) {
	if v < Allow || v > Deny {
		return nil, fmt.Errorf("verdict %d is not valid", int(v))
	}
	return []byte(v.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (v *Verdict) UnmarshalText(text []byte) error {
	parsed, err := ParseVerdict(string(text))
	if err != nil {
		return err
	}
	*v = parsed
	return nil
}

// Mode limits which calls run without asking.
type Mode int

const (
	// Supervised asks as the levels say.
	Supervised Mode = iota
	// ReadOnly denies every call that is not read_only.
	ReadOnly
	// Autonomous does not ask where a level says [Ask]. [Confirm] and [Deny] do not
	// change.
	Autonomous
)

var modeNames = []string{"supervised", "read_only", "autonomous"}

// String returns the name used in configuration and JSON.
func (m Mode) String() string {
	if m < Supervised || m > Autonomous {
		return fmt.Sprintf("Mode(%d)", int(m))
	}
	return modeNames[m]
}

// ParseMode is the inverse of [Mode.String].
func ParseMode(s string) (Mode, error) {
	i := slices.Index(modeNames, s)
	if i < 0 {
		return 0, fmt.Errorf("unknown mode %q, expected one of %s", s, strings.Join(modeNames, ", "))
	}
	return Mode(i), nil
}

// MarshalText implements [encoding.TextMarshaler].
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }
