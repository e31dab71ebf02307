package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/tool"
)

// openAPI answers GET /v1/openapi.json.
func (s *Server) openAPI(r *request) error {
	text, err := s.document()
	if err != nil {
		return err
	}
	s.send(r.w, http.StatusOK, text)
	return nil
}

// document returns the OpenAPI document, from the table of routes and the types of their bodies.
func document() ([]byte, error) {
	d := &documenter{schemas: make(map[string]*jsonschema.Schema), known: textual()}
	for of, with := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[operation.Outcome](): operation.JSONType(),
		reflect.TypeFor[journal.Record]():    journal.JSONType(),
	} {
		schema, err := jsonschema.ForType(with, &jsonschema.ForOptions{TypeSchemas: d.known})
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", of, err)
		}
		d.known[of] = schema
	}
	problem, err := d.schema(Problem{})
	if err != nil {
		return nil, err
	}
	paths, all := map[string]map[string]any{}, shapes()
	for _, r := range routes() {
		operation, err := d.operation(r, all[r.method+" "+r.path], problem)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		if paths[r.path] == nil {
			paths[r.path] = map[string]any{}
		}
		paths[r.path][strings.ToLower(r.method)] = operation
	}
	return json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "toolhost", "version": "1", "description": "docs/rest-api.md describes each route."},
		"paths":   paths,
		"components": map[string]any{
			"schemas":         d.schemas,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}},
		},
	})
}

// textual returns the schemas of types that write themselves as text, or as any JSON.
func textual() map[reflect.Type]*jsonschema.Schema {
	known := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	}
	for _, t := range []reflect.Type{
		reflect.TypeFor[tool.Tier](), reflect.TypeFor[tool.Kind](), reflect.TypeFor[policy.Verdict](), reflect.TypeFor[policy.Mode](),
		reflect.TypeFor[supervisor.Phase](), reflect.TypeFor[supervisor.Scope](), reflect.TypeFor[sandbox.Isolation](), reflect.TypeFor[egress.Destination](),
	} {
		known[t] = &jsonschema.Schema{Type: "string"}
	}
	return known
}

// documenter makes the parts of the document. Named types become components.
type documenter struct {
	schemas map[string]*jsonschema.Schema
	known   map[reflect.Type]*jsonschema.Schema
}

// pathParameter matches a parameter in a path.
const pathParameter = `\{([a-z]+)\}`

// operation describes a route.
func (d *documenter) operation(r route, of shape, problem *jsonschema.Schema) (map[string]any, error) {
	o := map[string]any{"summary": of.does, "operationId": operationID(r)}
	var parameters []map[string]any
	add := func(in, name string, required bool) {
		parameters = append(parameters, map[string]any{"in": in, "name": name, "required": required, "schema": &jsonschema.Schema{Type: "string"}})
	}
	for _, match := range regexp.MustCompile(pathParameter).FindAllStringSubmatch(r.path, -1) {
		add("path", match[1], true)
	}
	for _, name := range r.params {
		add("query", name, false)
	}
	if parameters != nil {
		o["parameters"] = parameters
	}
	var credentials []map[string][]string // one of these
	for _, role := range r.roles.Names() {
		credentials = append(credentials, map[string][]string{"token": {role}})
	}
	if credentials != nil {
		o["security"] = credentials
	}
	if of.takes != nil {
		schema, err := d.schema(of.takes)
		if err != nil {
			return nil, err
		}
		o["requestBody"] = map[string]any{"content": content("application/json", schema)}
	}
	answers, err := d.answers(of)
	if err != nil {
		return nil, err
	}
	answers["default"] = map[string]any{"description": "A problem", "content": content(problemType, problem)}
	o["responses"] = answers
	return o, nil
}

// operationID returns a name for a route that programs can use.
func operationID(r route) string {
	return strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(r.method+r.path), "_"), "_")
}

// answers describes the answers of a route that are no problems.
func (d *documenter) answers(of shape) (map[string]any, error) {
	answer := map[string]any{"description": "Success"}
	var choices []*jsonschema.Schema
	for _, value := range of.gives {
		schema, err := d.schema(value)
		if err != nil {
			return nil, err
		}
		choices = append(choices, schema)
	}
	switch {
	case of.otherwise:
		answer["description"] = "A message of MCP"
	case of.media != "":
		answer["content"] = content(of.media, &jsonschema.Schema{Type: "string"})
	case len(choices) == 1:
		answer["content"] = content("application/json", choices[0])
	default:
		answer["content"] = content("application/json", &jsonschema.Schema{AnyOf: choices})
	}
	answers := map[string]any{"200": answer}
	for _, status := range of.also {
		answers[strconv.Itoa(status)] = answer
	}
	return answers, nil
}

func content(media string, schema *jsonschema.Schema) map[string]any {
	return map[string]any{media: map[string]any{"schema": schema}}
}

// schema returns the schema of the type of a value: of a list of a named type, or of a named type, it
// refers to the component.
func (d *documenter) schema(value any) (*jsonschema.Schema, error) {
	t := reflect.TypeOf(value)
	if t.Kind() == reflect.Slice && t.Name() == "" {
		items, err := d.schema(reflect.Zero(t.Elem()).Interface())
		return &jsonschema.Schema{Type: "array", Items: items}, err
	}
	name := component(t)
	if d.schemas[name] == nil || name == "" {
		schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: d.known})
		if err != nil || name == "" {
			return schema, err
		}
		d.schemas[name] = schema
	}
	return &jsonschema.Schema{Ref: "#/components/schemas/" + name}, nil
}

// component returns the name of a type in the document, "" for one that has none.
func component(t reflect.Type) string {
	if t.Name() == "" || t == reflect.TypeFor[json.RawMessage]() {
		return ""
	}
	of := t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]
	if of == "httpapi" {
		return strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	}
	return strings.ToUpper(of[:1]) + of[1:] + t.Name()
}
