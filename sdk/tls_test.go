package sdk

import "testing"

func TestNewIdentity(t *testing.T) {
	if got, err := newIdentity(""); got != nil || err != nil || got.certificate() != nil {
		t.Errorf("without a client's certificate: %v, %v, want no TLS", got, err)
	}
	if _, err := newIdentity("no PEM"); err == nil {
		t.Error("a client's certificate that is none is taken")
	}
}
