package config

import (
	"errors"
	"os"
)

// StateDir returns the state directory that a configuration names, also of one
// that has mistakes elsewhere: a host that runs with what the files said before
// can so be found. lookupEnv is that of [LoadOptions].
func StateDir(path string, lookupEnv func(name string) (value string, set bool)) (string, error) {
	if lookupEnv == nil {
		lookupEnv = os.LookupEnv
	}
	src, err := readSource(path)
	if err != nil {
		return "", err
	}
	d := newDecoder(src, LoadOptions{LookupEnv: lookupEnv})
	bodies, ok := d.parse()
	if !ok {
		return "", d.error()
	}
	if cfg := d.decode(bodies); cfg.StateDir != "" {
		return cfg.StateDir, nil
	}
	return "", errors.Join(d.error(), errors.New("the configuration names no state directory"))
}
