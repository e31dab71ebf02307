package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// described is the part of the OpenAPI document that tests read.
type described struct {
	OpenAPI string `json:"openapi"`
	Paths   map[string]map[string]struct {
		Summary     string                                      `json:"summary"`
		OperationID string                                      `json:"operationId"`
		Parameters  []struct{ In, Name string }                 `json:"parameters"`
		Security    []map[string][]string                       `json:"security"`
		RequestBody map[string]any                              `json:"requestBody"`
		Responses   map[string]struct{ Content map[string]any } `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]struct{ Properties map[string]any } `json:"schemas"`
	} `json:"components"`
}

// readDocument returns the document, and a compiler that knows it.
func readDocument(t *testing.T) (described, *jsonschema.Compiler) {
	t.Helper()
	text, err := httpapi.Document()
	if err != nil {
		t.Fatal(err)
	}
	var d described
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", value); err != nil {
		t.Fatal(err)
	}
	return d, c
}

// documented is the document, read once: nearly every test asks for something. mu guards the compiler.
var documented struct {
	once     sync.Once
	mu       sync.Mutex
	document described
	compiler *jsonschema.Compiler
}

// matches reports whether a path is one of a template.
func matches(template, path string) bool {
	words, of := strings.Split(path, "/"), strings.Split(template, "/")
	return len(words) == len(of) && !slices.ContainsFunc(of, func(word string) bool {
		i := slices.Index(of, word)
		return word != words[i] && !strings.HasPrefix(word, "{")
	})
}

// conforms checks an answer, whatever a test asked for, against the document.
func conforms(t *testing.T, r *http.Request, a answer) {
	t.Helper()
	media, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil || len(a.body) == 0 || media != "application/json" && media != "application/problem+json" {
		return
	}
	documented.once.Do(func() { documented.document, documented.compiler = readDocument(t) })
	documented.mu.Lock()
	defer documented.mu.Unlock()
	d, compiler := documented.document, documented.compiler
	for template, methods := range d.Paths {
		of, ok := methods[strings.ToLower(r.Method)]
		if !ok || !matches(template, r.URL.Path) || strings.HasPrefix(template, "/mcp") {
			continue
		}
		status := fmt.Sprint(a.status)
		if _, listed := of.Responses[status].Content[media]; !listed {
			status = "default"
		}
		if _, listed := of.Responses[status].Content[media]; !listed || a.status < 400 && status == "default" {
			t.Errorf("%s %s answers %d with %s, which the OpenAPI document lacks", r.Method, template, a.status, media)
			return
		}
		escape := strings.NewReplacer("~", "~0", "/", "~1")
		at := fmt.Sprintf("openapi.json#/paths/%s/%s/responses/%s/content/%s/schema", escape.Replace(template), strings.ToLower(r.Method), status, escape.Replace(media))
		schema, err := compiler.Compile(at)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
		if err != nil {
			t.Fatalf("%v in %s", err, a.body)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s %s answers %d, which differs from the OpenAPI document: %v\n%s", r.Method, template, a.status, err, a.body)
		}
		return
	}
}

// TestDocument compares the document with the table of routes.
func TestDocument(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	served := ask(t, h, h.Agent, "GET", "/v1/openapi.json", "")
	want, err := httpapi.Document()
	if err != nil || served.status != http.StatusOK || !bytes.Equal(served.body, want) {
		t.Errorf("GET /v1/openapi.json = %d with %d bytes, %v", served.status, len(served.body), err)
	}
	d, compiler := readDocument(t)
	if d.OpenAPI != "3.1.0" {
		t.Errorf("openapi is %q", d.OpenAPI)
	}
	ids := map[string]bool{}
	for _, r := range httpapi.Routes() {
		of, ok := d.Paths[r.Path][strings.ToLower(r.Method)]
		if !ok || of.Summary == "" {
			t.Errorf("the OpenAPI document lacks %s %s, or says nothing about it: add it to shapes()", r.Method, r.Path)
		}
		delete(d.Paths[r.Path], strings.ToLower(r.Method))
		if ids[of.OperationID] || of.OperationID == "" {
			t.Errorf("%s %s has the operationId %q, which is not its own", r.Method, r.Path, of.OperationID)
		}
		ids[of.OperationID] = true
		var roles []string
		for _, credential := range of.Security {
			roles = append(roles, credential["token"]...)
		}
		if !slices.Equal(roles, r.Roles) {
			t.Errorf("%s %s is for %v, want %v", r.Method, r.Path, roles, r.Roles)
		}
		path := 0
		for _, p := range of.Parameters {
			if p.In == "path" {
				path++
			}
		}
		if path != strings.Count(r.Path, "{") {
			t.Errorf("%s has %d parameters in its path", r.Path, path)
		}
	}
	for path, methods := range d.Paths {
		for method := range methods {
			t.Errorf("the OpenAPI document has %s %s, which is not served", method, path)
		}
	}
	for name := range d.Components.Schemas {
		if _, err := compiler.Compile("openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("the schema %s: %v", name, err)
		}
	}
	for _, key := range httpapi.Shapes() {
		if !slices.ContainsFunc(httpapi.Routes(), func(r httpapi.Route) bool { return r.Method+" "+r.Path == key }) {
			t.Errorf("shapes() has %s, which is not a route", key)
		}
	}
}

// TestBodies compares the members of each body in the document with those that the handler reads: for
// an unknown one it lists them.
func TestBodies(t *testing.T) {
	d, _ := readDocument(t)
	for _, r := range httpapi.Routes() {
		if r.Method == http.MethodGet || strings.Contains(r.Path, "mcp") || r.Path == "/v1/handover" || r.Path == "/v1/secrets/{name}" && r.Method == http.MethodDelete {
			continue // no body, or only over the control socket
		}
		h := httpapitest.Start(t, httpapitest.Options{})
		token := map[string]string{"agent": h.Agent, "approver": h.Approver, "admin": h.Admin}[r.Roles[len(r.Roles)-1]]
		if r.Path == "/v1/calls/{id}/cancel" || r.Path == "/v1/calls" {
			token = h.Agent
		}
		path := strings.NewReplacer("{name}", "missing", "{id}", "ap_x").Replace(r.Path)
		var p httpapi.Problem
		ask(t, h, token, r.Method, path, `{"no-such-member":1}`).into(t, http.StatusBadRequest, &p)
		h.Stop()
		var members []string
		of := d.Paths[r.Path][strings.ToLower(r.Method)]
		if content, ok := of.RequestBody["content"].(map[string]any); ok {
			body := content["application/json"].(map[string]any)["schema"].(map[string]any)
			name := strings.TrimPrefix(body["$ref"].(string), "#/components/schemas/")
			for member := range d.Components.Schemas[name].Properties {
				members = append(members, member)
			}
		}
		slices.Sort(members)
		want := "members are " + strings.Join(members, ", ")
		if len(members) == 0 {
			want = "the body has no members"
		}
		if !strings.Contains(p.Detail+"; "+p.Hint, want) {
			t.Errorf("%s %s says %q, %q; the OpenAPI document says %q", r.Method, r.Path, p.Detail, p.Hint, want)
		}
	}
}
