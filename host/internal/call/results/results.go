// Package results keeps whole results that were too long for their callers, as files,
// for a limited time. A result is found by its user and its handle, which is the id of
// the call. Other users cannot find it.
//
// A result is either kept completely or not at all, even after kill -9. If a result cannot be
// written, its caller gets no handle; the call itself does not fail.
package results

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// DefaultTTL is the TTL if [Options] has none.
	DefaultTTL = time.Hour
	// DefaultQuota is the quota if [Options] has none.
	DefaultQuota = 256 * tool.MiB

	// sweepEvery is how often expired results are removed.
	sweepEvery = time.Minute
	// block is the unit in which results are charged to the quota: the space that a
	// small file takes on disk. So the quota also bounds the number of results.
	block = 4 * int64(tool.KiB)
)

// Options configure a [Dir].
type Options struct {
	// Path is the directory, which Open creates if needed; required. Only one Dir may
	// use it at a time.
	Path string
	// TTL is how long a result is kept; 0 means [DefaultTTL].
	TTL time.Duration
	// Quota bounds the results of one user; 0 means [DefaultQuota]. The oldest are
	// dropped first. It counts in whole blocks of 4 KiB, as files do.
	Quota tool.ByteSize
	// Logger gets the errors that no caller sees; nil means none.
	Logger hclog.Logger
}

// Dir keeps results in a directory. Its methods may be called from any goroutine.
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
	bytes int64   // of kept results and of results being written, in blocks
}

// kept is a readable result.
type kept struct {
	handle, file string
	size         int64 // of the file
	whole        int64 // of the result: more if only its head was kept
	untrusted    bool  // the result holds content from outside
	made         time.Time
}

// Open opens a directory. Results of an earlier run can be read until they expire;
// partly written ones are removed. The caller must Close the Dir.
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

// Close returns when nothing is running. The results are not removed. Further calls do
// nothing.
func (d *Dir) Close() error { return d.close() }

// TTL returns how long a result is kept.
func (d *Dir) TTL() time.Duration { return d.ttl }

// handlePattern matches the id of a call. Nothing else becomes a file name.
var handlePattern = lazyregexp.New(`^tc_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// folderPattern matches the results of [folder].
var folderPattern = lazyregexp.New(`^[0-9a-f]{64}$`)

// folder returns the name of a user's directory. It is a hash, since a user's name may
// contain any characters.
func folder(user string) string {
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:])
}

// shelf returns the shelf of a user. d.mu is held.
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

// inBlocks returns the space on disk of a file of the given size.
func inBlocks(size int64) int64 { return max(1, (size+block-1)/block) * block }
