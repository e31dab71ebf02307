package httpapi

import (
	"maps"
	"slices"
	"time"
)

// SetKeepAlive makes streams say sooner that they live. It is called before the
// server serves.
func (s *Server) SetKeepAlive(every time.Duration) { s.timing.keepAlive = every }

// SetWriteTimeout sets how long a client may take to read. Call it before the server serves.
func (s *Server) SetWriteTimeout(within time.Duration) { s.timing.write = within }

// SetConnections bounds the connections of a network listener, those without a
// token too unless unauthenticated is 0, and how long a header may take. It is
// called before the server serves.
func (s *Server) SetConnections(all, unauthenticated int, header time.Duration) {
	s.connections.all, s.connections.unauthenticated, s.timing.header = all, unauthenticated, header
}

// The bounds of the connections of a network listener.
const (
	MaxConnections     = maxConnections
	MaxUnauthenticated = maxUnauthenticated
)

// Route is one line of the table of routes.
type Route struct {
	Method, Path string
	Roles        []string
}

// Routes returns the table of routes.
func Routes() []Route {
	var all []Route
	for _, r := range routes() {
		all = append(all, Route{r.method, r.path, r.roles.Names()})
	}
	return all
}

// Document returns the OpenAPI document.
func Document() ([]byte, error) { return document() }

// Shapes returns the routes that the OpenAPI document can describe.
func Shapes() []string { return slices.Sorted(maps.Keys(shapes())) }
