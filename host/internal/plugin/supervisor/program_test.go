package supervisor

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/internal/testprogram"
)

// programs are the programs of the tests' plugins: the test binary under many names. All tests
// share a name's program, because each new link changes the identity of the file, and a
// supervisor hashes a file that it does not know. Hashing costs as much as the rest of a start.
var programs programTable

type programTable struct {
	dir    string
	size   int64
	digest string // of the test binary

	mu sync.Mutex // guards the links in dir
}

// prepare makes the directory of the programs and hashes the test binary.
func (p *programTable) prepare(dir string) error {
	p.dir = dir
	if err := os.Mkdir(dir, 0o755); err != nil { // other users execute the programs
		return err
	}
	path, err := p.named("plugin")
	if err != nil {
		return err
	}
	opened, err := process.OpenProgram(path, "", new(process.Hashes))
	if err != nil {
		return err
	}
	defer opened.Close()
	p.size, p.digest = opened.ID.Size, opened.Digest
	return nil
}

// named returns the program with a name, which it makes if there is none.
func (p *programTable) named(name string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	path := filepath.Join(p.dir, name)
	if _, err := os.Lstat(path); err == nil {
		return path, nil
	}
	info, err := os.Stat(testBinary)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o022 == 0 && os.Link(testBinary, path) == nil {
		return path, nil
	}
	return p.copyTo(path)
}

// copyTo copies the test binary to path.
func (p *programTable) copyTo(path string) (string, error) {
	in, err := os.Open(testBinary)
	if err != nil {
		return "", err
	}
	defer in.Close()
	return path, testprogram.Write(path, in)
}

// tell gives a supervisor the digest of a program that is the test binary.
func (p *programTable) tell(s *Supervisor, path string) {
	if id := process.LookAt(path); id.Size == p.size && fs.FileMode(id.Mode).Perm()&0o022 == 0 {
		s.hashes.Put(id, p.digest)
	}
}
