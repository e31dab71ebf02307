package supervisor

import (
	"context"
	"slices"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/sdk/tool"
)

// secrets returns the function for the secrets of the plugin's calls, nil if it has none.
func (m *manager) secrets() process.SecretFunc {
	if len(m.plugin.Secrets)+len(m.plugin.UserSecrets) == 0 {
		return nil
	}
	return m.secret
}

// secret returns the value of a secret for a call of a user.
func (m *manager) secret(ctx context.Context, user, name string) (string, *tool.Error) {
	if value, ok := m.plugin.Secrets[name]; ok {
		return value, nil
	}
	if !slices.Contains(m.plugin.UserSecrets, name) {
		return "", process.NotGranted(name)
	}
	return m.userSecret(ctx, user, name)
}

// userSecret returns the value of a secret that a user has set.
func (m *manager) userSecret(ctx context.Context, user, name string) (string, *tool.Error) {
	if m.s.opts.UserSecret != nil {
		value, set, err := m.s.opts.UserSecret(ctx, user, name)
		if err != nil {
			m.log.Error("a secret of a user cannot be read", "user", user, "secret", name, "error", err)
			return "", tool.Errorf(tool.Unavailable, "the secret %s cannot be read", name).WithHint("the log of the host has the cause; if it was changed, set it again: %s", m.s.opts.Command("secret set "+name))
		}
		if set {
			return value, nil
		}
	}
	return "", tool.Errorf(tool.Unavailable, "the user has not set the secret %s", name).
		WithHint("the user sets it with %s", m.s.opts.Command("secret set "+name))
}

// redact removes secrets from a text of the pool's processes.
func (p *pool) redact(text string) string {
	text = p.s.opts.Redact(text)
	if len(p.plugin.UserSecrets)+len(p.plugin.Network.UserSecrets()) == 0 {
		return text
	}
	return p.s.opts.Hide(p.of.user, text)
}
