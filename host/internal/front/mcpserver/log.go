package mcpserver

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// logHandler passes the MCP SDK's log to the host's log. The SDK reports every connection at
// level info, which becomes debug here.
type logHandler struct{ logger hclog.Logger }

func (h logHandler) slog() *slog.Logger { return slog.New(h) }

func (h logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return h.logger.GetLevel() <= hostLevel(level)
}

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	args := make([]any, 0, 2*r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		args = append(args, a.Key, a.Value.Any())
		return true
	})
	h.logger.Log(hostLevel(r.Level), r.Message, args...)
	return nil
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	args := make([]any, 0, 2*len(attrs))
	for _, a := range attrs {
		args = append(args, a.Key, a.Value.Any())
	}
	return logHandler{h.logger.With(args...)}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.logger.Named(name)} }

func hostLevel(level slog.Level) hclog.Level {
	switch {
	case level >= slog.LevelError:
		return hclog.Error
	case level >= slog.LevelWarn:
		return hclog.Warn
	default:
		return hclog.Debug
	}
}
