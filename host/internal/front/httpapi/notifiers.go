package httpapi

import "github.com/toolhost/toolhost/sdk/tool"

// Notified is the answer to POST /v1/notifiers/{name}/test.
type Notified struct {
	// Name is the notifier's.
	Name string `json:"name"`
	// Delivered is set if its webhook or command has taken the message.
	Delivered bool `json:"delivered"`
}

// testNotifier answers POST /v1/notifiers/{name}/test: it delivers a test message.
func (s *Server) testNotifier(r *request) (any, error) {
	if err := r.readBody(fields{}); err != nil {
		return nil, err
	}
	if s.opts.TestNotifier == nil {
		return nil, tool.Errorf(tool.NotFound, "This host has no notifiers")
	}
	name := r.PathValue("name")
	if err := s.opts.TestNotifier(r.Context(), name); err != nil {
		return nil, err
	}
	return Notified{Name: name, Delivered: true}, nil
}
