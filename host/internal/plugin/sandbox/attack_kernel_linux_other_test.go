//go:build linux && !amd64

package sandbox

func otherABIAttacks() []attack { return nil }

func otherABICalls() map[string]func() error { return nil }
