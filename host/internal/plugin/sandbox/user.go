package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// Users that no account has, according to systemd's table of users and groups: one for each
// program.
const (
	firstUser = 60578
	users     = 61184 - firstUser
)

// chooseUser chooses the user that a program of a root host runs as.
func (p *plan) chooseUser() {
	c := &p.profile.Confinement
	user := &launch.User{UID: c.RunAs.UID, GID: c.RunAs.GID, Groups: true}
	switch {
	case c.RunAs.Mode == RunAsHost:
		return
	case c.RunAs.Mode == RunAsUser:
	case c.writesWorkspace() && p.profile.Workspace != "", c.Workspace == ReadWorkspace && closed(p.profile.Workspace):
		owner, err := ownerOf(p.profile.Workspace)
		if err != nil || owner.UID == 0 {
			p.missing = append(p.missing, Gap{
				Layer: LayerRunAs, Reason: "the workspace belongs to root",
				Remedy: "give the workspace to an ordinary user (chown), or name one with run_as",
			})
			return
		}
		*user = owner
	default:
		p.userOfItsOwn = true
		user.UID = p.ownUser()
		user.GID = user.UID
	}
	if user.UID == 0 {
		return
	}
	// The launcher checks this, too, but only after its start.
	if err := p.workableBy(user); err != nil && c.RunAs.Mode == RunAsAuto {
		p.missing = append(p.missing, newGap(LayerRunAs, err))
		return
	}
	p.user = user
	p.on[LayerRunAs] = true
}

// closed reports whether only the owner of a directory and its group can read it.
func closed(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o005 != 0o005
}

// ownUser returns a user for this program only: one derived from its name, or the next one that
// owns no sibling of the program's own directory.
func (p *plan) ownUser() int {
	var own string
	if len(p.profile.Own) > 0 {
		own = p.profile.Own[0]
	}
	return freeUser(p.profile.name(), own)
}

// GiveAway gives a directory, and everything in it, to a user that no account has and that owns no
// sibling of the path that it will have, if there is one. It is for root.
func GiveAway(ctx context.Context, dir *os.Root, path string) error {
	user := freeUser(path, path)
	return handOverAll(ctx, dir, &launch.User{UID: user, GID: user})
}

// freeUser returns a user that no account has: one derived from a name, or the next one that owns
// no sibling of a path, which may be "".
func freeUser(name, path string) int {
	taken := map[int]bool{}
	others, err := os.ReadDir(filepath.Dir(path))
	if path == "" || err != nil {
		others = nil // then the name alone decides
	}
	for _, other := range others {
		info, err := other.Info()
		if err != nil || filepath.Base(path) == other.Name() {
			continue
		}
		if owner, err := ownerIn(info); err == nil {
			taken[owner.UID] = true
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	likely := int(h.Sum32() % users)
	for n := range users {
		if user := firstUser + (likely+n)%users; !taken[user] {
			return user
		}
	}
	return firstUser + likely
}

func (p *Profile) name() string {
	if p.Name != "" {
		return p.Name
	}
	return filepath.Base(p.Path)
}

// workableBy returns an error if a user cannot execute the program or reach its
// directories.
func (p *plan) workableBy(u *launch.User) error {
	info, err := p.profile.Binary.Stat()
	if err != nil {
		return err
	}
	if !passes(info, u) {
		return fmt.Errorf("user %d may not execute the program (mode %v)", u.UID, info.Mode().Perm())
	}
	if p.on[LayerMounts] {
		return nil // the sandbox makes the directories above
	}
	for _, path := range append(nonEmpty(p.profile.Dir), p.profile.Own...) {
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); err == nil && !passes(info, u) {
				return fmt.Errorf("user %d cannot reach %s: %s is closed to it (mode %v)", u.UID, path, dir, info.Mode().Perm())
			}
		}
	}
	return nil
}

// passes reports whether a user may execute a file, or pass through a directory.
func passes(info fs.FileInfo, u *launch.User) bool {
	owner, err := ownerIn(info)
	if err != nil {
		return false
	}
	bit := fs.FileMode(0o001)
	switch {
	case owner.UID == u.UID:
		bit = 0o100
	case owner.GID == u.GID:
		bit = 0o010
	}
	return info.Mode().Perm()&bit != 0
}

func ownerOf(path string) (launch.User, error) {
	info, err := os.Stat(path)
	if err != nil {
		return launch.User{}, err
	}
	return ownerIn(info)
}

func ownerIn(info fs.FileInfo) (launch.User, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return launch.User{}, errors.New("this system does not report owners")
	}
	return launch.User{UID: int(stat.Uid), GID: int(stat.Gid), Groups: true}, nil
}

// handOver gives the program's own directories to its user. Files with several hard links
// keep their owner, since one of the links may belong to another user.
func (l *Launcher) handOver(ctx context.Context, p *plan) error {
	if os.Geteuid() != 0 {
		return nil
	}
	l.owning.Lock()
	defer l.owning.Unlock()
	if p.userOfItsOwn && p.user != nil {
		p.user.UID = p.ownUser() // another program may have it now
		p.user.GID = p.user.UID
	}
	user := p.user
	if user == nil {
		user = &launch.User{UID: os.Geteuid(), GID: os.Getegid()}
	}
	for _, dir := range append(nonEmpty(p.profile.Tmp), p.profile.Own...) {
		if owner, err := ownerOf(dir); err == nil && owner.UID == user.UID {
			continue
		}
		if err := handOverTree(ctx, dir, user); err != nil {
			return fmt.Errorf("give %s to user %d: %w", dir, user.UID, err)
		}
	}
	return nil
}

func handOverTree(ctx context.Context, dir string, user *launch.User) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was only read
	return handOverAll(ctx, root, user)
}

func handOverAll(ctx context.Context, root *os.Root, user *launch.User) error {
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && !entry.IsDir() && stat.Nlink > 1 {
			return nil
		}
		return root.Lchown(name, user.UID, user.GID)
	})
}
