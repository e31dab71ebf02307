package toolpluginv1

import "github.com/hashicorp/go-plugin"

const (
	// Version is the application protocol version of this contract, as
	// negotiated by go-plugin. It changes only if old plugins cannot be served.
	Version = 1

	// ServiceName is the name under which the contract is dispensed.
	ServiceName = "toolplugin"

	// MaxMessageBytes bounds one message in either direction. Both sides set
	// it explicitly: gRPC's own default is 4 MiB.
	MaxMessageBytes = 64 << 20
)

// Handshake is what host and plugin agree on before they speak. The cookie is
// no secret: it only lets a plugin notice that a person started it by hand.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		ProtocolVersion:  Version,
		MagicCookieKey:   "TOOLHOST_PLUGIN",
		MagicCookieValue: "toolplugin.v1",
	}
}
