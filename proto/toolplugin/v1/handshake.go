package toolpluginv1

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/go-plugin"
)

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

// IsHandshake reports whether a line of a plugin's output is meant as its
// handshake: 1|1|unix|/path|grpc|certificate.
func IsHandshake(line string) bool {
	core, rest, _ := strings.Cut(line, "|")
	_, err := strconv.Atoi(core)
	return err == nil && strings.Count(rest, "|") >= 2
}

// HandshakeFault is one thing in a handshake that a host refuses.
type HandshakeFault struct {
	// Brief is a clause for callers, without values.
	Brief string
	// Text says what was found and expected, for an operator or an author.
	Text string
}

// CheckHandshake returns everything in a handshake that a host refuses. The
// socket must be in socketDir: otherwise a plugin could make the host speak to
// anybody's.
func CheckHandshake(line, socketDir string) []HandshakeFault {
	parts := strings.Split(line, "|")
	parts = append(parts, make([]string, max(6-len(parts), 0))...) // absent ones are empty
	core, version, network, address, protocol, certificate := parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]
	var faults []HandshakeFault
	fault := func(brief, format string, args ...any) {
		faults = append(faults, HandshakeFault{brief, fmt.Sprintf(format, args...)})
	}
	if core != strconv.Itoa(plugin.CoreProtocolVersion) {
		fault("it is built for another go-plugin", "it speaks go-plugin's core protocol %q, expected %d", core, plugin.CoreProtocolVersion)
	}
	if version != strconv.Itoa(Version) {
		fault("it speaks another version of the plugin contract",
			"it speaks version %q of the plugin contract, expected %d: build it with an sdk of the host's version", version, Version)
	}
	if protocol != string(plugin.ProtocolGRPC) {
		fault("it does not speak gRPC", "it speaks %q, expected grpc", protocol)
	}
	switch {
	case network != "unix":
		fault("it does not listen on a unix socket", "it listens on %q, expected a unix socket", network)
	case filepath.Dir(filepath.Clean(address)) != socketDir:
		fault("its socket is not where it belongs", "its socket is %q, expected one in the directory $%s", address, plugin.EnvUnixSocketDir)
	}
	if certificate == "" {
		fault("it does not offer TLS", "it has no certificate: serve with TLS (the sdk does) and put the certificate into the handshake's sixth field")
	} else if problem := checkCertificate(certificate); problem != "" {
		fault("its certificate cannot be used", "its certificate %s", problem)
	}
	return faults
}

// checkCertificate says what is wrong with the last field of a handshake.
func checkCertificate(field string) string {
	der, err := base64.RawStdEncoding.DecodeString(field)
	if err != nil {
		return "is not base64 without padding"
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return "is not X.509 in DER form"
	}
	if err := certificate.VerifyHostname("localhost"); err != nil {
		return "is not for the DNS name localhost (a subject alternative name)"
	}
	return ""
}
