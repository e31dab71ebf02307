package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/sdk/display"
)

const (
	// maxLogged is how much of a text of the server one line of the log shows.
	maxLogged = 1 << 10
	// linesPerSecond and lineBurst bound the lines of the server in the log.
	linesPerSecond, lineBurst = 20, 200
)

// serverLog writes what a server says to the plugin's log. It never blocks for long: lines above the
// rate are counted and dropped.
type serverLog struct {
	log     *slog.Logger
	limit   *rate.Limiter
	redact  *strings.Replacer
	dropped atomic.Int64
}

func newServerLog(log *slog.Logger, secrets []string) *serverLog {
	var pairs []string
	for _, secret := range secrets {
		pairs = append(pairs, secret, hidden)
	}
	return &serverLog{log: log, limit: rate.NewLimiter(linesPerSecond, lineBurst), redact: strings.NewReplacer(pairs...)}
}

// line writes one line of the server.
func (l *serverLog) line(level slog.Level, from, text string) {
	if !l.limit.Allow() {
		l.dropped.Add(1)
		return
	}
	if n := l.dropped.Swap(0); n > 0 {
		l.log.Warn("the server writes too much; lines were dropped", "lines", n)
	}
	l.log.Log(context.Background(), level, l.clean(text), "from", from) //nolint:forbidigo // the log is of no call
}

// clean returns a text of the server for logs and errors.
func (l *serverLog) clean(text string) string {
	text = strings.ToValidUTF8(display.Head(text, 4*maxLogged), "\uFFFD")
	return display.Cut(display.Line(l.redact.Replace(text)).String(), maxLogged)
}

// message writes a log message of the protocol.
func (l *serverLog) message(_ context.Context, request *mcp.LoggingMessageRequest) {
	if request == nil || request.Params == nil {
		return
	}
	text, ok := request.Params.Data.(string)
	if !ok {
		raw, err := json.Marshal(request.Params.Data)
		if err != nil {
			return
		}
		text = string(raw)
	}
	l.line(levelOf(string(request.Params.Level)), "log", text)
}

// levelOf returns a level of syslog, which MCP uses, as one of the log.
func levelOf(level string) slog.Level {
	switch level {
	case "debug":
		return slog.LevelDebug
	case "warning":
		return slog.LevelWarn
	case "error", "critical", "alert", "emergency":
		return slog.LevelError
	}
	return slog.LevelInfo
}
