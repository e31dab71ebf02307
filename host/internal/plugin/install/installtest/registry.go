// Package installtest is a registry of npm for tests, with packages that a test makes.
package installtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Registry is a registry of npm on loopback. Its URL is [httptest.Server.URL] and a slash.
type Registry struct {
	*httptest.Server

	mu       sync.Mutex // guards the fields below
	packages map[string][]Release
	asked    []string
}

// Release is a version of a package.
type Release struct {
	Version string
	// Age is how long ago it was published.
	Age time.Duration
	// About are fields of package.json besides name and version, Files other files by their names.
	About map[string]any
	Files map[string]string
	// Forged says that the archive is not the one of its integrity.
	Forged bool
}

// New returns a registry without packages. The caller closes it.
func New() *Registry {
	r := &Registry{packages: map[string][]Release{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	return r
}

// Asked returns the paths that were requested.
func (r *Registry) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

// Add publishes releases of a package; the last one is the newest.
func (r *Registry) Add(name string, releases ...Release) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.packages[name] = append(r.packages[name], releases...)
}

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, req.URL.Path)
	name, file, archive := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/-/")
	releases, ok := r.packages[name]
	if !ok {
		http.Error(w, `{"error":"not found"}`, http.StatusNotFound)
		return
	}
	if archive {
		for _, rel := range releases {
			if file == rel.Version+".tgz" {
				_, _ = w.Write(rel.archive(name, rel.Forged))
			}
		}
		return
	}
	versions, times := map[string]any{}, map[string]any{}
	for _, rel := range releases {
		sum := sha512.Sum512(rel.archive(name, false))
		about := map[string]any{"name": name, "version": rel.Version, "dist": map[string]any{
			"tarball": r.URL + "/" + name + "/-/" + rel.Version + ".tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}}
		maps.Copy(about, rel.About)
		versions[rel.Version] = about
		times[rel.Version] = time.Now().Add(-rel.Age).UTC().Format(time.RFC3339)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"name": name, "versions": versions, "time": times, "dist-tags": map[string]any{"latest": releases[len(releases)-1].Version},
	})
}

func (rel *Release) archive(name string, forged bool) []byte {
	about := map[string]any{"name": name, "version": rel.Version}
	maps.Copy(about, rel.About)
	text, _ := json.Marshal(about)
	files := map[string]string{"package.json": string(text)}
	maps.Copy(files, rel.Files)
	if forged {
		files["forged"] = "yes"
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	tape := tar.NewWriter(zip)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		_ = tape.WriteHeader(&tar.Header{Name: "package/" + path, Mode: 0o644, Size: int64(len(files[path])), Typeflag: tar.TypeReg})
		_, _ = tape.Write([]byte(files[path]))
	}
	_ = tape.Close()
	_ = zip.Close()
	return out.Bytes()
}
