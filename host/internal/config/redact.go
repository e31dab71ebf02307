package config

import "io"

// Hide returns text with the [Config.Secrets] hidden.
func (c *Config) Hide(text string) string {
	if len(c.Secrets) == 0 {
		return text
	}
	hide := secrets{values: c.Secrets}
	return hide.in(text)
}

// Redact returns a writer that writes each line to w with the [Config.Secrets]
// hidden. Logs use it, since plugins may print their settings.
func (c *Config) Redact(w io.Writer) io.Writer {
	if len(c.Secrets) == 0 {
		return w
	}
	return &redactor{w: w, hide: c.Hide}
}

type redactor struct {
	w    io.Writer
	hide func(string) string
}

// Write implements [io.Writer].
func (r *redactor) Write(line []byte) (int, error) {
	if _, err := io.WriteString(r.w, r.hide(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}
