// Package schema checks the arguments of calls against the JSON Schemas that plugins publish. It
// refuses schemas that break the plugin contract, repairs arguments where nothing is lost, and
// explains other mistakes so that a model can correct them. It does no I/O. No input makes it panic
// or use unbounded time or memory.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Schema is the input schema of one tool. It is immutable and safe for concurrent use.
type Schema struct {
	doc     map[string]any // closed, with the keywords of ours and bounds for integers
	public  json.RawMessage
	listed  json.RawMessage
	digest  string // of doc before integers got bounds
	rawName string // the property marked x-raw, or ""
	rules   func() *rules
}

// rules are a compiled schema.
type rules struct {
	validator *jsonschema.Schema
	roles     roleMap
}

// Compile reads the input schema of a tool, checks it against the rules of the plugin contract and
// closes it: properties that it does not declare are mistakes, unless the schema allows them. The
// error names the place and the rule, and completes a sentence that ends with "refused because".
func Compile(input json.RawMessage) (*Schema, error) {
	return compiled(Known(input))
}

// CompileForeign is [Compile] for a tool that another program defines: properties need no type and no
// description, and the schema may name an earlier version of JSON Schema. What cannot be compiled is
// refused, and so is a reference out of the schema.
func CompileForeign(input json.RawMessage) (*Schema, error) {
	return compiled(KnownForeign(input))
}

// compiled compiles a schema now.
func compiled(s *Schema, err error) (*Schema, error) {
	if err != nil {
		return nil, err
	}
	if err := s.compile(); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	return s, nil
}

// Known is [Compile] for a schema that Compile has accepted before. It makes the same checks, but
// compiles the schema when it is used first, which takes a millisecond. A schema that does not
// compile then accepts nothing.
func Known(input json.RawMessage) (*Schema, error) { return known(input, false) }

// KnownForeign is [Known] for a schema that [CompileForeign] has accepted before.
func KnownForeign(input json.RawMessage) (*Schema, error) { return known(input, true) }

func known(input json.RawMessage, foreign bool) (*Schema, error) {
	s, err := read(input, foreign)
	if err == nil {
		err = checkVisible(s.doc, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	s.rules = sync.OnceValue(func() *rules {
		compiled, err := compileRules(s.doc)
		if err != nil {
			compiled, _ = compileRules(nothing())
		}
		return compiled
	})
	return s, nil
}

// compile compiles the schema now.
func (s *Schema) compile() error {
	compiled, err := compileRules(s.doc)
	s.rules = func() *rules { return compiled }
	return err
}

// nothing is a schema that accepts nothing.
func nothing() map[string]any { return map[string]any{"not": map[string]any{}} }

func compileRules(doc map[string]any) (*rules, error) {
	validator, err := compileDocument(doc)
	if err != nil {
		return nil, err
	}
	return &rules{validator: validator, roles: newRoleMap(validator)}, nil
}

// read reads, checks and closes a schema, and does not compile it.
func read(input json.RawMessage, foreign bool) (*Schema, error) {
	doc, err := readDocument(input)
	if err != nil {
		return nil, err
	}
	if err := checkRules(doc, foreign); err != nil {
		return nil, err
	}
	closeSchema(doc, foreign)
	s := &Schema{
		doc:     doc,
		public:  Canonical(withoutKeywords(doc)),
		listed:  Canonical(forList(withoutKeywords(doc))),
		digest:  digest.Of(Canonical(doc)),
		rawName: rawProperty(doc),
	}
	boundIntegers(doc)
	return s, nil
}

// Public returns the schema for clients: closed, and without the host's own keywords. The caller
// must not change it.
func (s *Schema) Public() json.RawMessage { return s.public }

// Listed returns the schema as lists of tools for a model have it: [Schema.Public] without what
// the model does not need to write arguments. The caller must not change it.
func (s *Schema) Listed() json.RawMessage { return s.listed }

// Digest returns the digest of the whole schema, including the host's keywords and descriptions. It
// does not depend on spelling.
func (s *Schema) Digest() string { return s.digest }

// Same reports whether two schemas have the same meaning, however they are spelled.
func (s *Schema) Same(other *Schema) bool { return reflect.DeepEqual(s.doc, other.doc) }

// Names returns the names of the declared arguments.
func (s *Schema) Names() map[string]bool {
	names := make(map[string]bool)
	for name := range s.properties(s.doc) {
		names[name] = true
	}
	return names
}

// Arguments are the checked arguments of a call.
type Arguments struct {
	// Values are the arguments by name, in the form of [Read], with defaults.
	Values map[string]any
	// Canonical is their canonical text; see [Canonical].
	Canonical json.RawMessage
	// Repairs are the changes that made them fit.
	Repairs []Repair
}

// Check checks arguments from [Read], which it may change. It repairs what it can without loss and
// adds the schema's defaults, so that judges and plugins see the same values. Otherwise the error,
// of code [tool.InvalidArgument], names every mistake, what was expected, and similar names.
func (s *Schema) Check(value any) (Arguments, *tool.Error) {
	var repairs []Repair
	if err := s.rules().validator.Validate(value); err != nil {
		if value, repairs, err = s.repair(value, err); err != nil {
			return Arguments{}, s.explain(value, err)
		}
	}
	// Defaults that do not fit the given values are documentation only.
	if whole, any := s.filled(s.doc, value, 0); any && s.rules().validator.Validate(whole) == nil {
		value = whole
	}
	return Arguments{Values: object(value), Canonical: Canonical(value), Repairs: repairs}, nil
}

// compileDocument compiles a document without outside references.
func compileDocument(doc map[string]any) (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(noLoader{})
	compiler.RegisterVocabulary(roleVocabulary())
	compiler.AssertVocabs()
	if err := compiler.AddResource(documentURL, doc); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(documentURL)
	if err != nil {
		return nil, compileError(err)
	}
	return compiled, nil
}

// documentURL is the base of every schema; nothing is fetched from it.
const documentURL = "schema:///tool"

// compileError reports where a document is not valid JSON Schema, without the library's addresses.
func compileError(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var mistake *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &mistake) {
		leaf := firstLeaf(mistake)
		return fmt.Errorf("at %s: not valid JSON Schema 2020-12: %s",
			pointer(leaf.InstanceLocation), leaf.ErrorKind.LocalizedString(english()))
	}
	return fmt.Errorf("not valid JSON Schema 2020-12: %w", err)
}

// noLoader refuses to fetch schemas.
type noLoader struct{}

// Load implements [jsonschema.URLLoader].
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s lies outside the schema, and nothing is fetched", url)
}
