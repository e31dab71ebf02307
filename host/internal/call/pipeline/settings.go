package pipeline

import (
	"slices"
	"sync"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/internal/links"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Settings are the options that a reload can replace.
type Settings struct {
	// Policy decides about the calls.
	Policy *policy.Rules
	// Roots are the directories that callers may work in. Relative paths are relative to the
	// first one.
	Roots []string
	// Own returns the directory that a user works in instead, an absolute path, or an error that
	// says why the user has none. It always returns the same for a user. nil means that all work
	// in Roots.
	Own func(user string) (dir string, err error)
	// ActionsPerHour bounds the calls of one user that change something; 0
	// means no bound.
	ActionsPerHour int

	resolved []string // Roots and the targets of their symbolic links
	users    *userSettings
}

// userSettings are the settings for users with a workspace of their own, by its path.
type userSettings struct {
	mu     sync.Mutex // guards byPath
	byPath map[string]*Settings
}

// maxUserSettings bounds the workspaces whose settings are kept. Others are made again.
const maxUserSettings = 1000

// Apply replaces the settings. The policy decides again about calls that change something and
// have not begun. Apply returns when no answer in advance by earlier settings counts any more,
// which takes a second at most.
func (p *Pipeline) Apply(s Settings) {
	s.resolve()
	p.settings.Store(&s)
	p.cache.reset()
	p.advance.wait()
}

// resolve adds the symbolic links' targets to the roots.
func (s *Settings) resolve() {
	s.resolved = slices.Clone(s.Roots)
	for _, root := range s.Roots {
		if target := links.Resolve(root); !slices.Contains(s.resolved, target) {
			s.resolved = append(s.resolved, target)
		}
	}
	s.users = &userSettings{byPath: make(map[string]*Settings)}
}

// in returns the settings for a user's own workspace, or s if there is none.
func (s *Settings) in(dir string) *Settings {
	if dir == "" {
		return s
	}
	s.users.mu.Lock()
	defer s.users.mu.Unlock()
	own := s.users.byPath[dir]
	if own == nil {
		own = &Settings{Policy: s.Policy.In(dir, links.Resolve), Roots: []string{dir}, ActionsPerHour: s.ActionsPerHour}
		own.resolve()
		if len(s.users.byPath) >= maxUserSettings {
			clear(s.users.byPath)
		}
		s.users.byPath[dir] = own
	}
	return own
}

// current returns the settings in force for a call.
func (p *Pipeline) current(c *call) *Settings { return p.settings.Load().in(c.workspace) }

// findWorkspace finds the caller's own workspace, if callers have one each. A user who cannot have
// one may call the tools that need none: those of plugins with one process for everybody, which
// sees no workspace, unless the policy decides by the files or commands in their arguments.
func (p *Pipeline) findWorkspace(c *call) error {
	own := p.settings.Load().Own
	if own == nil || c.entry.OfHost() {
		return nil
	}
	dir, err := own(c.Caller.User)
	if err != nil && (c.entry.OwnProcesses || c.entry.NamesFiles()) {
		return tool.Errorf(tool.PermissionDenied, "You have no workspace here: %v", err).WithHint("ask the administrator for a credential of another user")
	}
	c.workspace = dir
	return nil
}
