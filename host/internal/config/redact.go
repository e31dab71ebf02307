package config

import "io"

// Redact returns a writer that passes on to w what is written to it, one line
// at a time, without the values that env and file returned. It is for logs:
// what a plugin prints may hold its settings.
func (c *Config) Redact(w io.Writer) io.Writer {
	if len(c.Secrets) == 0 {
		return w
	}
	return &redactor{w: w, hide: secrets{values: c.Secrets}}
}

type redactor struct {
	w    io.Writer
	hide secrets
}

// Write implements [io.Writer].
func (r *redactor) Write(line []byte) (int, error) {
	if _, err := io.WriteString(r.w, r.hide.in(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}
