package sdk

import (
	"context"
	"log/slog"
	"os"

	"github.com/hashicorp/go-hclog"
)

// newLogger returns a logger whose lines the host understands.
func newLogger(name string) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: name, Level: hclog.Debug, Output: os.Stderr, JSONFormat: true})
}

// logHandler writes what authors log with package slog.
type logHandler struct {
	logger hclog.Logger
	group  string // prefix of keys, such as "request."
}

var _ slog.Handler = logHandler{}

// Enabled implements [slog.Handler].
func (h logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return hclogLevel(level) >= h.logger.GetLevel()
}

// Handle implements [slog.Handler].
func (h logHandler) Handle(_ context.Context, record slog.Record) error {
	var pairs []any
	record.Attrs(func(a slog.Attr) bool {
		pairs = appendAttr(pairs, h.group, a)
		return true
	})
	h.logger.Log(hclogLevel(record.Level), record.Message, pairs...)
	return nil
}

// WithAttrs implements [slog.Handler].
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var pairs []any
	for _, a := range attrs {
		pairs = appendAttr(pairs, h.group, a)
	}
	return logHandler{logger: h.logger.With(pairs...), group: h.group}
}

// WithGroup implements [slog.Handler].
func (h logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return logHandler{logger: h.logger, group: h.group + name + "."}
}

// appendAttr appends the key and the value of an attribute. The attributes of a
// group have its name before their own.
func appendAttr(pairs []any, group string, a slog.Attr) []any {
	value := a.Value.Resolve()
	switch {
	case value.Kind() != slog.KindGroup && a.Equal(slog.Attr{}):
		return pairs
	case value.Kind() != slog.KindGroup:
		return append(pairs, group+a.Key, value.Any())
	}
	if a.Key != "" {
		group += a.Key + "."
	}
	for _, inner := range value.Group() {
		pairs = appendAttr(pairs, group, inner)
	}
	return pairs
}

func hclogLevel(level slog.Level) hclog.Level {
	switch {
	case level >= slog.LevelError:
		return hclog.Error
	case level >= slog.LevelWarn:
		return hclog.Warn
	case level >= slog.LevelInfo:
		return hclog.Info
	case level >= slog.LevelDebug:
		return hclog.Debug
	}
	return hclog.Trace
}
