package roots

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lockPatience is how long a change waits for another process that changes the same
	// directory. Such changes usually take less than a millisecond.
	lockPatience = 2 * time.Second
	lockPause    = time.Millisecond
)

// lockDirectory keeps other processes that use this package from changing the directory
// between the last check and the change. If another program holds the lock too long,
// lockDirectory returns without it.
func lockDirectory(dir *os.File) (unlock func()) {
	fd := int(dir.Fd())
	patience, pause := time.NewTimer(lockPatience), time.NewTicker(lockPause)
	defer patience.Stop()
	defer pause.Stop()
	for {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = unix.Flock(fd, unix.LOCK_UN) } // closing unlocks as well
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return func() {}
		}
		select {
		case <-pause.C:
		case <-patience.C:
			return func() {}
		}
	}
}
