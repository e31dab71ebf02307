package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolhost/toolhost/sdk/guard"
	"github.com/toolhost/toolhost/sdk/tool"
)

// inject ends the TLS of a client and adds the credentials of the destination to its requests.
// server is the connection to the real server, which is verified as usual.
func (c *connection) inject(client, server net.Conn, to Target, credentials []Credential) error {
	authority := c.proxy.opts.Authority
	if authority == nil {
		return errors.New("the proxy has no certificate authority")
	}
	inner := tls.Server(client, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if name, err := guard.HostName(hello.ServerName); !to.ip.IsValid() && (err != nil || name != to.Host) {
				return nil, refusal(to, "the TLS handshake names another server")
			}
			return authority.certificateFor(to.Host)
		},
	})
	ctx, cancel := context.WithTimeout(c.proxy.ctx, headerTimeout)
	err := inner.HandshakeContext(ctx)
	cancel()
	if err != nil {
		_ = server.Close()
		return err
	}
	return c.requests(inner, server, to, credentials)
}

// addCredentials adds the credentials of a destination to a request. It refuses TRACE, whose answer
// would have them, and a user's secret that no header can have. White space around a secret is not
// part of it: a file ends with a newline.
func (c *connection) addCredentials(ctx context.Context, r *http.Request, to Target, credentials []Credential) *tool.Error {
	if len(credentials) > 0 && strings.EqualFold(r.Method, http.MethodTrace) {
		return refusal(to, "the answer to TRACE would contain the credentials")
	}
	for _, credential := range credentials {
		value := credential.Value
		if credential.PerUser {
			if c.cause.User == "" || c.cause.None != "" { // a preview gets no secrets
				return refusal(to, "it needs a secret of the user, and "+cmp.Or(c.cause.None, "whose call it is for is not known"))
			}
			var err *tool.Error
			if value, err = c.proxy.opts.SecretOf(ctx, c.cause.User, credential.Secret); err != nil {
				return err
			}
		}
		value = strings.TrimSpace(value)
		if !httpguts.ValidHeaderFieldValue(value) {
			return refusal(to, "the secret "+credential.Secret+" contains characters that no header can have, such as a line break")
		}
		r.Header.Set(credential.Header, credential.Prefix+value)
	}
	return nil
}
