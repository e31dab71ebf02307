package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// measureAgain is the least time between two measurements of a workspace. The longest one is
	// measureShare times as long as the last one took.
	measureAgain = 15 * time.Second
	measureShare = 20
	// maxLooked bounds the files and directories that one measurement looks at, and maxPending the
	// bytes of the paths that it remembers.
	maxLooked  = 500_000
	maxPending = 16 << 20
	// maxMeasured bounds the workspaces whose use is remembered.
	maxMeasured = 10_000
)

// Usage measures how much the users' workspaces hold, one at a time and in the background, so what
// it knows is some seconds old. It is safe for concurrent use.
type Usage struct {
	dirs  Dirs
	turn  chan struct{} // holds a token while a workspace is measured
	tasks sync.WaitGroup
	ctx   context.Context //nolint:containedctx // of all measurements; Close ends it
	end   context.CancelFunc

	mu    sync.Mutex // guards the rest
	users map[string]*measured
}

// measured is what is known of the workspace of a user.
type measured struct {
	holding   Holding
	measuring bool
	next      time.Time // when it may be measured again
}

// Holding is how much a workspace held when it was measured.
type Holding struct {
	// Size is the space that files take on the disk.
	Size tool.ByteSize
	// AtLeast is set if the workspace has too many files to look at all of them.
	AtLeast bool
	// At is when the measurement ended; zero if there was none yet.
	At time.Time
}

// NewUsage returns a Usage that has measured nothing, and measures until ctx ends. The caller must
// Close it.
func NewUsage(ctx context.Context, dirs Dirs) *Usage {
	u := &Usage{dirs: dirs, turn: make(chan struct{}, 1), users: make(map[string]*measured)}
	u.ctx, u.end = context.WithCancel(ctx)
	return u
}

// Close returns when nothing is measured any more. It may be called once.
func (u *Usage) Close() error {
	u.mu.Lock()
	u.end()
	u.mu.Unlock()
	u.tasks.Wait()
	return nil
}

// Of returns what the workspace of a user held when it was last measured, without waiting. If that
// was some time ago, it is measured again.
func (u *Usage) Of(user string) Holding {
	dir, err := u.dirs.Of(user)
	if err != nil || dir == "" {
		return Holding{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	m := u.users[user]
	if m == nil {
		if len(u.users) >= maxMeasured {
			u.forgetOne()
		}
		m = &measured{}
		u.users[user] = m
	}
	if !m.measuring && !time.Now().Before(m.next) && u.ctx.Err() == nil {
		m.measuring = true
		u.tasks.Go(func() { u.measure(dir, m) }) // ends with the measurement, or with Close
	}
	return m.holding
}

// forgetOne forgets a workspace that is not being measured. The caller holds mu.
func (u *Usage) forgetOne() {
	for user, m := range u.users {
		if !m.measuring {
			delete(u.users, user)
			return
		}
	}
}

// measure measures a workspace when it is its turn.
func (u *Usage) measure(dir string, m *measured) {
	select {
	case u.turn <- struct{}{}:
		defer func() { <-u.turn }()
	case <-u.ctx.Done():
		return
	}
	begun := time.Now()
	holding, err := measure(u.ctx, dir, maxLooked)
	u.mu.Lock()
	defer u.mu.Unlock()
	m.measuring = false
	if errors.Is(err, fs.ErrNotExist) {
		return // the call that asked makes it
	}
	m.next = time.Now().Add(max(measureAgain, measureShare*time.Since(begun)))
	if err == nil {
		holding.At = time.Now()
		m.holding = holding
	}
}

// measure adds up the space that the files below a directory take. It follows no links, and looks at
// so many entries at most.
func measure(ctx context.Context, dir string, most int) (h Holding, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Holding{}, err
	}
	defer func() { _ = root.Close() }() // it was only read
	w := walk{ctx: ctx, root: root, left: most, waiting: []string{"."}}
	for len(w.waiting) > 0 && w.left > 0 {
		if err := context.Cause(ctx); err != nil {
			return Holding{}, err
		}
		last := len(w.waiting) - 1
		next := w.waiting[last]
		w.waiting, w.names = w.waiting[:last], w.names-len(next)
		w.look(next)
	}
	return Holding{Size: tool.ByteSize(w.size), AtLeast: w.partly || w.left <= 0}, nil
}

// walk is a measurement in progress.
type walk struct {
	ctx     context.Context //nolint:containedctx // of one measurement
	root    *os.Root
	waiting []string // directories to look at
	names   int      // the bytes of their paths
	left    int      // how many entries may still be looked at
	size    int64
	partly  bool // a directory was left out
}

// look adds the entries of one directory. One that cannot be read, or that has vanished, holds
// nothing.
func (w *walk) look(dir string) {
	f, err := w.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	for w.ctx.Err() == nil && w.left > 0 {
		const some = 256 // a directory may have millions
		entries, err := f.ReadDir(some)
		for _, entry := range entries {
			w.left--
			var stat unix.Stat_t
			if unix.Fstatat(int(f.Fd()), entry.Name(), &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // it has vanished
			}
			const block = 512 // bytes, on every file system
			w.size += stat.Blocks * block
			name := path.Join(dir, entry.Name())
			switch {
			case !entry.IsDir():
			case w.names+len(name) > maxPending:
				w.partly = true
			default:
				w.waiting, w.names = append(w.waiting, name), w.names+len(name)
			}
		}
		if err != nil {
			return
		}
	}
}
