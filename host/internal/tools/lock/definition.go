package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Definition is what matters to a model and to the policy about a tool: everything that its plugin
// says of it, except limits and whether it is available. It is immutable; the zero Definition
// defines nothing.
type Definition struct {
	spec      tool.Spec
	canonical string
	digest    string
}

// Define returns the definition of a tool. It fails if a schema is not JSON, or a tier is not valid.
func Define(spec tool.Spec) (Definition, error) {
	spec.Unavailable, spec.MaxOutput, spec.Timeout, spec.MaxConcurrency = "", 0, 0, 0
	text, err := json.Marshal(spec)
	if err != nil {
		return Definition{}, fmt.Errorf("its definition cannot be compared: %w", err)
	}
	value, err := schema.ReadText(text, depthInFile)
	if err != nil {
		return Definition{}, fmt.Errorf("its definition cannot be compared: %w", err)
	}
	canonical := string(schema.Canonical(value))
	return Definition{spec: spec, canonical: canonical, digest: digest.Of(canonical)}, nil
}

// depthInFile is how deep a definition is nested in the lock file: below the file, plugins, a plugin,
// tools and a tool.
const depthInFile = 5

// Name returns the name of the tool.
func (d Definition) Name() string { return d.spec.Name }

// Spec returns the tool as it was defined, without limits. The caller must not change its slices.
func (d Definition) Spec() tool.Spec { return d.spec }

// Digest returns the digest of the canonical JSON, "sha256:" and hexadecimal digits; "" for the zero
// Definition.
func (d Definition) Digest() string { return d.digest }

// JSON returns the canonical JSON.
func (d Definition) JSON() json.RawMessage { return json.RawMessage(d.canonical) }

// readDefinition reads a definition of the lock file. Keys are compared exactly: what a person reads
// in the file is what counts.
func readDefinition(name, sum string, value any) (Definition, error) {
	canonical := schema.Canonical(value)
	if got := digest.Of(canonical); got != digestPrefix+sum {
		return Definition{}, fmt.Errorf("sha256: it is %s, and the digest of the definition is %s: the file was edited by hand or damaged", sum, strings.TrimPrefix(got, digestPrefix))
	}
	var spec tool.Spec
	decoder := json.NewDecoder(bytes.NewReader(canonical))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return Definition{}, fmt.Errorf("definition: %w", err)
	}
	if spec.Name != name {
		return Definition{}, fmt.Errorf("definition: its name is %q", tool.VisibleName(spec.Name))
	}
	d, err := Define(spec)
	switch {
	case err != nil:
		return Definition{}, fmt.Errorf("definition: %w", err)
	case d.canonical != string(canonical):
		return Definition{}, errors.New("definition: it is not written as toolhost writes it")
	}
	return d, nil
}

// digestPrefix begins a digest; the lock file names the algorithm in its key.
const digestPrefix = "sha256:"
