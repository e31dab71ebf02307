package httpapi

import (
	"slices"
	"time"

	"github.com/toolhost/toolhost/internal/excerpt"
)

// UserSecret is a secret that each user sets for their own calls. No answer has its value.
type UserSecret struct {
	Name string `json:"name"`
	// Plugins are those that may request it while one of the user's calls runs.
	Plugins []string `json:"plugins"`
	// Set is when the user set it; zero if the user has not.
	Set time.Time `json:"set,omitzero"`
}

// listSecrets answers GET /v1/secrets with the secrets of the caller's user.
func (s *Server) listSecrets(r *request) (any, error) {
	all := s.userSecrets()
	if s.opts.Secrets == nil {
		return list(all), nil
	}
	kept, err := s.opts.Secrets.List(r.Context(), r.caller.User)
	if err != nil {
		return nil, err
	}
	for _, k := range kept {
		i := slices.IndexFunc(all, func(secret UserSecret) bool { return secret.Name == k.Name })
		if i < 0 { // the configuration no longer has it
			i, all = len(all), append(all, UserSecret{Name: k.Name, Plugins: []string{}})
		}
		all[i].Set = k.Set
	}
	return list(all), nil
}

// setSecret answers PUT /v1/secrets/{name}.
func (s *Server) setSecret(r *request) (any, error) {
	var value string
	if err := r.readBody(fields{"value": &value}); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if !slices.ContainsFunc(s.userSecrets(), func(secret UserSecret) bool { return secret.Name == name }) {
		return nil, notFound.problem("users cannot set a secret %q", excerpt.Printable(name, maxShown)).
			hint("the administrator adds a block secret %q with for = \"user\", and lists it in secrets of a plugin", excerpt.Printable(name, maxShown))
	}
	if err := s.opts.Secrets.Set(r.Context(), r.caller.User, name, value); err != nil {
		return nil, err
	}
	s.opts.Logger.Info("a user's secret was set", "user", r.caller.User, "secret", name)
	return struct{}{}, nil
}

// removeSecret answers DELETE /v1/secrets/{name}.
func (s *Server) removeSecret(r *request) (any, error) {
	if err := r.readBody(fields{}); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	removed := false
	if s.opts.Secrets != nil {
		var err error
		if removed, err = s.opts.Secrets.Remove(r.Context(), r.caller.User, name); err != nil {
			return nil, err
		}
	}
	if !removed {
		return nil, notFound.problem("the user has not set a secret %q", excerpt.Printable(name, maxShown))
	}
	s.opts.Logger.Info("a user's secret was removed", "user", r.caller.User, "secret", name)
	return struct{}{}, nil
}

func (s *Server) userSecrets() []UserSecret {
	if s.opts.UserSecrets == nil || s.opts.Secrets == nil {
		return []UserSecret{}
	}
	return s.opts.UserSecrets()
}
