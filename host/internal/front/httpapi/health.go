package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
)

// Health is the state of the host.
type Health struct {
	// Status is "ok", "unhealthy", "ready", "starting" or "stopping".
	Status string `json:"status"`
	// Problems describe what is wrong. With "ok" and "ready", the host works in spite of them.
	Problems []string `json:"problems,omitempty"`
	// Journal reports whether the journal is unchanged.
	Journal journal.Integrity `json:"journal,omitempty"`
	// URL is where the host is reached over HTTP, in an answer on the control socket.
	URL string `json:"url,omitempty"`
	// Configuration is the digest of the contents of the configuration that is in force, in an answer
	// on the control socket.
	Configuration string `json:"configuration,omitempty"`
}

// health answers GET /healthz. It needs no credential, so it names no paths.
func (s *Server) health(r *request) error {
	h := Health{Status: "ok", Problems: s.problems(r), Journal: s.opts.Journal.Integrity()}
	if r.local && s.opts.URL != nil {
		h.URL = s.opts.URL()
	}
	if r.local && s.opts.Configuration != nil {
		h.Configuration = s.opts.Configuration()
	}
	if h.Problems != nil {
		h.Status = "unhealthy"
		return s.write(r.w, http.StatusServiceUnavailable, h)
	}
	h.Problems = s.opts.CertificateProblems()
	return s.write(r.w, http.StatusOK, h)
}

// healthCommand returns a command to put into problems. Health needs no credential, so only the
// control socket's clients get the command with the files of the host; see [Options.Command].
func (s *Server) healthCommand(r *request, words string) string {
	if r.local {
		return s.opts.Command(words)
	}
	return "toolhost " + words
}

// problems returns the reasons why the host refuses calls that change something; nil if
// it does not.
func (s *Server) problems(r *request) []string {
	err := errors.Join(s.opts.Store.Healthy(), s.opts.Journal.Healthy())
	switch {
	case errors.Is(err, journal.ErrChanged):
		return []string{"the journal was changed: calls that change something are refused; " + s.healthCommand(r, "journal verify") + " shows where"}
	case errors.Is(err, store.ErrGone):
		return []string{"the database was removed or replaced under the host: calls that change something are refused; stop the host and restore the database"}
	case err != nil:
		return []string{"the journal cannot be written: calls that change something are refused"}
	}
	return nil
}

// stopping reports whether the host has begun to stop.
func (s *Server) stopping() bool {
	select {
	case <-s.opts.Stopping:
		return true
	default:
		return false
	}
}

// readiness answers GET /readyz.
func (s *Server) readiness(r *request) error {
	if s.stopping() {
		return s.write(r.w, http.StatusServiceUnavailable, Health{Status: "stopping", Problems: []string{"the host is stopping and starts no calls"}})
	}
	if s.opts.Ready != nil {
		select {
		case <-s.opts.Ready:
		default:
			return s.write(r.w, http.StatusServiceUnavailable, Health{Status: "starting", Problems: []string{"plugins are starting"}})
		}
	}
	if problems := s.problems(r); problems != nil {
		return s.write(r.w, http.StatusServiceUnavailable, Health{Status: "unhealthy", Problems: problems})
	}
	ready := Health{Status: "ready", Problems: slices.Concat(s.stopProblems(r), s.keptOff(r), s.pendingProblems(r), s.opts.CertificateProblems(), s.opts.NotifyProblems())}
	if s.opts.RuleProblems != nil && len(s.opts.RuleProblems()) > 0 {
		ready.Problems = append(ready.Problems, "rules of the policy do not fit the tools: "+s.healthCommand(r, "policy test")+" shows which")
	}
	return s.write(r.w, http.StatusOK, ready)
}

// keptOff describes the plugins that stay off for a while because they crash.
func (s *Server) keptOff(r *request) (problems []string) {
	for _, p := range s.opts.Supervisor.Plugins() {
		if p.Phase == supervisor.Broken && !p.RetryAt.IsZero() {
			last := ""
			if p.LastCrash != nil {
				last = ": the last time it " + p.LastCrash.Cause
			}
			problems = append(problems, fmt.Sprintf("the plugin %q crashed too often and is off until %s%s; %s starts it immediately",
				p.Name, p.RetryAt.UTC().Format(time.RFC3339), last, s.healthCommand(r, "plugins restart "+p.Name)))
		}
	}
	return problems
}
