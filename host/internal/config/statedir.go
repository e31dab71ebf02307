package config

import (
	"errors"
	"os"
)

// StateDir returns the state directory of a configuration, even if the configuration
// has mistakes elsewhere: so a client finds a host that runs with the earlier content
// of the files. lookupEnv is as in [LoadOptions].
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
