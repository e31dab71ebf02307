// Package results keeps whole results that were too long for their callers,
// as files, for a while. One is found by its user and its handle, which is the
// id of the call: the handle of another user's result is as good as none.
//
// A result is there wholly or not at all, also after kill -9. What cannot be
// written is not kept, which costs nobody more than the handle.
package results

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// DefaultTTL is what no TTL in [Options] means.
	DefaultTTL = time.Hour
	// DefaultQuota is what no Quota in [Options] means.
	DefaultQuota = 256 * tool.MiB

	// sweepEvery is how often results are looked for whose time has passed.
	sweepEvery = time.Minute
	// block is the least that a result counts for: what it takes of a disk. It
	// bounds how many a user can have.
	block = 4 * int64(tool.KiB)
)

// Options are what a [Dir] needs.
type Options struct {
	// Path is the directory, made if it is not there; required. It belongs to
	// one Dir at a time.
	Path string
	// TTL is how long a result is kept; 0 means [DefaultTTL].
	TTL time.Duration
	// Quota bounds the results of one user; 0 means [DefaultQuota]. The oldest
	// go first. It is taken in whole blocks of 4 KiB, as files are.
	Quota tool.ByteSize
	// Logger takes what happens without a caller; nil drops it.
	Logger hclog.Logger
}

// Dir keeps results in a directory. Its methods may be called concurrently.
type Dir struct {
	root   *os.Root
	ttl    time.Duration
	quota  int64
	logger hclog.Logger

	mu    sync.Mutex // guards users
	users map[string]*shelf

	closing  chan struct{}
	sweeping sync.WaitGroup
	close    func() error
}

// shelf holds the results of one user.
type shelf struct {
	kept  []*kept // the oldest first
	bytes int64   // of kept, and of what is being written, in blocks
}

// kept is a result that can be read.
type kept struct {
	handle, file string
	size         int64 // of the file
	whole        int64 // of the result: more if only its head was kept
	made         time.Time
}

// Open opens a directory. Results of an earlier run can be read until their
// time passes; what was half written is removed. The caller must Close it.
func Open(opts Options) (*Dir, error) {
	if opts.TTL < 0 || opts.Quota < 0 {
		return nil, errors.New("results: the time and the quota must not be negative")
	}
	if err := os.MkdirAll(opts.Path, 0o700); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	root, err := os.OpenRoot(opts.Path)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	d := &Dir{
		root: root, ttl: cmp.Or(opts.TTL, DefaultTTL), quota: inBlocks(int64(cmp.Or(opts.Quota, DefaultQuota))), logger: opts.Logger,
		users: make(map[string]*shelf), closing: make(chan struct{}),
	}
	if d.logger == nil {
		d.logger = hclog.NewNullLogger()
	}
	d.close = sync.OnceValue(func() error {
		close(d.closing)
		d.sweeping.Wait()
		return root.Close()
	})
	if err := d.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("results: %w", err), root.Close())
	}
	d.sweeping.Go(d.tend) // until Close, which waits for it
	return d, nil
}

// Close returns when nothing runs any more. The results stay. Further calls do
// nothing.
func (d *Dir) Close() error { return d.close() }

// TTL returns how long a result is kept.
func (d *Dir) TTL() time.Duration { return d.ttl }

// handlePattern is what the id of a call looks like. Nothing else becomes the
// name of a file.
var handlePattern = regexp.MustCompile(`^tc_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// folderPattern is what [folder] makes.
var folderPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// folder is the name of a user's directory: a user may be called anything.
func folder(user string) string {
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:])
}

// shelf returns that of a user. d.mu is held.
func (d *Dir) shelf(folder string) *shelf {
	s := d.users[folder]
	if s == nil {
		s = &shelf{}
		d.users[folder] = s
	}
	return s
}

// index returns the place of the result with a handle, or -1. Dir.mu is held.
func (s *shelf) index(handle string) int {
	return slices.IndexFunc(s.kept, func(k *kept) bool { return k.handle == handle })
}

// inBlocks is what a file of a size takes of a disk.
func inBlocks(size int64) int64 { return max(1, (size+block-1)/block) * block }
