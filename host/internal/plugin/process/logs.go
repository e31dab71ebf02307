package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"
)

const (
	// logRate is the number of lines per second that one process may add to the
	// host's log, and the size of a burst.
	logRate = 200
	// maxLogLine is the length at which a line is cut, in bytes.
	maxLogLine = 8 << 10
	// crashLines is the number of lines after the first that the report of a crash has in
	// the log: enough for the stack of the goroutine that panicked.
	crashLines = 30
	// dropNotice is the least time between two notices of dropped lines.
	dropNotice = time.Second
)

// pluginLog copies the output of a process to the host's log, up to a rate limit
// for all its outputs together. Lines above the limit are counted and dropped.
type pluginLog struct {
	log    hclog.Logger
	redact func(string) string

	mu      sync.Mutex // guards all below
	limiter *rate.Limiter
	dropped int
	noticed time.Time
	crash   int // the lines of standard error that still belong to the report of a crash
}

func newPluginLog(log hclog.Logger, redact func(string) string) *pluginLog {
	return &pluginLog{log: log, redact: redact, limiter: rate.NewLimiter(logRate, logRate)}
}

// allow reports whether one more line may be logged.
func (l *pluginLog) allow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	allowed := l.limiter.AllowN(now, 1)
	if !allowed {
		l.dropped++
	}
	if l.dropped > 0 && now.Sub(l.noticed) >= dropNotice {
		l.noteDropped(now)
	}
	return allowed
}

// flush logs the number of lines that were dropped since the last notice.
func (l *pluginLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped > 0 {
		l.noteDropped(time.Now())
	}
}

// noteDropped is called with mu held.
func (l *pluginLog) noteDropped(now time.Time) {
	l.log.Warn("the plugin logs too much, lines were left out", "lines", l.dropped, "lines_per_second", logRate)
	l.dropped, l.noticed = 0, now
}

// stdout logs a line of standard output, which is reserved for the handshake.
func (l *pluginLog) stdout(line []byte) {
	if len(line) > 0 && l.allow() {
		l.log.Warn(l.clean(string(line)), "stream", "stdout")
	}
}

// stderr logs a line of standard error: a line of hclog at its own level, the
// report of a crash as errors, any other line at debug level.
func (l *pluginLog) stderr(line []byte) {
	if len(line) == 0 || !l.allow() {
		return
	}
	if level, message, fields, ok := l.parse(line); ok {
		l.log.Log(level, message, fields...)
		return
	}
	level := hclog.Debug
	if l.inCrash(line) {
		level = hclog.Error
	}
	l.log.Log(level, l.clean(string(line)), "stream", "stderr")
}

// inCrash reports whether a line belongs to the report of a crash: its first line, or one of those
// that follow.
func (l *pluginLog) inCrash(line []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case beginsCrash(line):
		l.crash = crashLines
	case l.crash == 0:
		return false
	default:
		l.crash--
	}
	return true
}

// clean returns a text of the plugin without secrets and control characters.
func (l *pluginLog) clean(s string) string { return cleanLine(l.redact(s)) }

// parse reads a JSON line of hclog. go-plugin's own parser panics if the message
// is not a string: a plugin could end the host.
func (l *pluginLog) parse(line []byte) (level hclog.Level, message string, fields []any, ok bool) {
	var raw map[string]any
	if line[0] != '{' || json.Unmarshal(line, &raw) != nil {
		return 0, "", nil, false
	}
	message, isText := raw["@message"].(string)
	name, _ := raw["@level"].(string)
	level = hclog.LevelFromString(name)
	if !isText || level == hclog.NoLevel || level == hclog.Off {
		return 0, "", nil, false
	}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		if strings.HasPrefix(key, "@") {
			continue
		}
		value := raw[key]
		if text, isText := value.(string); isText {
			value = l.clean(text)
		} else if text, err := json.Marshal(value); err == nil {
			value = l.clean(string(text))
		}
		// The prefix keeps a plugin from setting the host's fields, such as the
		// plugin's name.
		fields = append(fields, "plugin."+l.clean(key), value)
	}
	return level, l.clean(message), fields, true
}

// cleanLine removes characters that control a terminal, change the direction of
// text, or make one line look like two.
func cleanLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return -1
		}
		return r
	}, s)
}

// eachLine calls f with each line of r until r ends. Lines are cut at maxLogLine
// and have no line end. It holds one line in memory at a time.
func eachLine(r *bufio.Reader, f func(line []byte)) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxLogLine-len(line))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err == nil || len(line) > 0 {
			f(trimEnd(line))
		}
		if err != nil {
			return // the end, or a broken pipe
		}
		line = line[:0]
	}
}

func trimEnd(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line
}
