package sandbox

import "strings"

// Report says what is in force for one process.
type Report struct {
	// Layers are in force, e.g. "rlimits", "no_new_privs", "pdeathsig".
	Layers []string `json:"layers"`
	// Missing could not be had here, each with the reason.
	Missing []string `json:"missing,omitempty"`
}

// String returns the report as one line, e.g.
// "rlimits, no_new_privs, pdeathsig; missing: landlock (not in this version)".
func (r Report) String() string {
	line := strings.Join(r.Layers, ", ")
	if line == "" {
		line = "nothing enforced"
	}
	if len(r.Missing) > 0 {
		line += "; missing: " + strings.Join(r.Missing, ", ")
	}
	return line
}
