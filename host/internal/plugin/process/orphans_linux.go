package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// killOrphans kills the processes that have the run directory of a dead host in their
// environment. A plugin dies with its host, but without a PID namespace a process that
// it started in another session does not.
func killOrphans(runDir string) {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return
	}
	mark := []byte("=" + runDir + "/") // of TMPDIR and PLUGIN_UNIX_SOCKET_DIR
	for _, path := range environs {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid <= 1 || pid == os.Getpid() {
			continue
		}
		killIfMarked(pid, path, mark)
	}
}

// killIfMarked opens the process before it reads the environment, so that it cannot
// kill another process that gets the same id.
func killIfMarked(pid int, environ string, mark []byte) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	defer func() { _ = unix.Close(fd) }()
	env, err := os.ReadFile(environ)
	if err != nil || !bytes.Contains(env, mark) {
		return // it has ended, or it is not one of ours
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it may have ended
}
