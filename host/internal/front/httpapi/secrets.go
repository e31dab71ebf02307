package httpapi

import (
	"cmp"
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
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

// owner returns the user whose secrets a request is about: the caller's, or the one that it names, if
// the caller may decide or administer the calls of that user.
func owner(r *request, user string) (string, error) {
	if user == "" || user == r.caller.User || r.caller.MayApprove(user) || r.caller.Roles.Has(auth.Admin) {
		return cmp.Or(user, r.caller.User), nil
	}
	return "", forbidden.problem("the credential is not for secrets of the user %q", excerpt.Printable(user, maxShown)).
		hint("use one of an admin, or of an approver of that user")
}

// listSecrets answers GET /v1/secrets with the secrets of a user.
func (s *Server) listSecrets(r *request) (any, error) {
	user, err := owner(r, r.query.text("user"))
	if err != nil {
		return nil, err
	}
	all := s.userSecrets()
	if s.opts.Secrets == nil {
		return list(all), nil
	}
	kept, err := s.opts.Secrets.List(r.Context(), user)
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
	var value, user string
	if err := r.readBody(fields{"value": &value, "user": &user}); err != nil {
		return nil, err
	}
	user, err := owner(r, user)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if !slices.ContainsFunc(s.userSecrets(), func(secret UserSecret) bool { return secret.Name == name }) {
		return nil, notFound.problem("users cannot set a secret %q", excerpt.Printable(name, maxShown)).
			hint("the administrator adds a block secret %q with for = \"user\", and lists it in secrets of a plugin", excerpt.Printable(name, maxShown))
	}
	if err := s.opts.Secrets.Set(r.Context(), user, name, value); err != nil {
		return nil, err
	}
	s.opts.Logger.Info("a user's secret was set", "user", user, "secret", name, "by", r.caller.User)
	return struct{}{}, nil
}

// removeSecret answers DELETE /v1/secrets/{name}.
func (s *Server) removeSecret(r *request) (any, error) {
	if err := r.readBody(fields{}); err != nil {
		return nil, err
	}
	user, err := owner(r, r.query.text("user"))
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	removed := false
	if s.opts.Secrets != nil {
		if removed, err = s.opts.Secrets.Remove(r.Context(), user, name); err != nil {
			return nil, err
		}
	}
	if !removed {
		return nil, notFound.problem("the user has not set a secret %q", excerpt.Printable(name, maxShown))
	}
	s.opts.Logger.Info("a user's secret was removed", "user", user, "secret", name, "by", r.caller.User)
	return struct{}{}, nil
}

func (s *Server) userSecrets() []UserSecret {
	if s.opts.UserSecrets == nil || s.opts.Secrets == nil {
		return []UserSecret{}
	}
	return s.opts.UserSecrets()
}
