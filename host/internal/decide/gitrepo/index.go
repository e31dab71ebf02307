package gitrepo

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
)

const hasSubmodules = "it has submodules, whose configuration is their own"

// submodules reports whether the index of a worktree lists submodules, in which git runs itself.
func submodules(path string) string {
	err := readIndex(path, func(mode uint32, _ []byte) error {
		if mode&modeKind == kindGitlink {
			return errSubmodule
		}
		return nil
	})
	switch {
	case err == nil || missing(err):
		return ""
	case errors.Is(err, errSubmodule):
		return hasSubmodules
	}
	return "its list of files cannot be read"
}

// Tracked calls each with the absolute path of every file that the repository lists which git would
// use in a directory. It fails if the list cannot be read completely.
func Tracked(dir string, each func(path string)) error {
	return find(dir, func(worktree, gitDir string, certain bool) error {
		if !certain {
			return nil
		}
		return readIndex(filepath.Join(gitDir, "index"), func(_ uint32, name []byte) error {
			each(filepath.Join(worktree, string(name)))
			return nil
		})
	})
}

// Exists reports whether git certainly finds a repository for a directory.
func Exists(dir string) bool {
	exists := false
	err := find(dir, func(_, _ string, certain bool) error {
		exists = exists || certain
		return nil
	})
	return exists && err == nil
}

// The kinds of entries in an index, by mode, and other parts of its format.
const (
	modeKind      = 0o170000
	kindGitlink   = 0o160000
	kindDirectory = 0o040000

	fixedSize  = 40 // times, numbers, mode, owner, size
	modeOffset = 24
	hashSize   = 20
	flagsSize  = 2

	flagExtended = 0x4000
	nameMask     = 0xfff
)

var (
	errIndex     = errors.New("the index is not understood")
	errSubmodule = errors.New(hasSubmodules)
)

// readIndex calls each with the mode and the name of every entry of an index. The name is valid
// until each returns. An error of each ends the reading.
func readIndex(path string, each func(mode uint32, name []byte) error) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	return entries(bufio.NewReader(io.LimitReader(f, maxIndex)), each)
}

// entries reads an index of version 2 to 4. It refuses a split index, and a sparse one,
// which omits the contents of directories.
func entries(r *bufio.Reader, each func(mode uint32, name []byte) error) error {
	var header struct{ Signature, Version, Entries uint32 }
	if err := binary.Read(r, binary.BigEndian, &header); err != nil {
		return err
	}
	if header.Signature != 0x44495243 || header.Version < 2 || header.Version > 4 { // DIRC
		return errIndex
	}
	entry := make([]byte, fixedSize+hashSize+flagsSize)
	var name []byte
	for range header.Entries {
		if _, err := io.ReadFull(r, entry); err != nil {
			return err
		}
		mode := binary.BigEndian.Uint32(entry[modeOffset:])
		if mode&modeKind == kindDirectory {
			return errIndex
		}
		size, flags := len(entry), binary.BigEndian.Uint16(entry[fixedSize+hashSize:])
		if flags&flagExtended != 0 {
			if header.Version < 3 {
				return errIndex
			}
			if _, err := r.Discard(flagsSize); err != nil {
				return err
			}
			size += flagsSize
		}
		var err error
		if name, err = readName(r, header.Version, size, int(flags&nameMask), name); err != nil {
			return err
		}
		if err := each(mode, name); err != nil {
			return err
		}
	}
	return noLink(r)
}

// readName reads the name at the end of an entry, in place of the name before it.
func readName(r *bufio.Reader, version uint32, size, length int, name []byte) ([]byte, error) {
	kept := 0
	if version == 4 { // how much of the name before it is dropped, and what follows
		dropped, err := offset(r)
		if err != nil || dropped > len(name) {
			return nil, errors.Join(err, errIndex)
		}
		kept = len(name) - dropped
	}
	name = name[:kept]
	for {
		part, err := r.ReadSlice(0)
		name = append(name, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	name = name[:len(name)-1]
	if length < nameMask && len(name) != length {
		return nil, errIndex
	}
	if version == 4 {
		return name, nil
	}
	// With the name, and one to eight zeros, its size is a multiple of eight.
	_, err := r.Discard((8 - (size+len(name)+1)%8) % 8)
	return name, err
}

// offset reads a number in the format of packs: seven bits in each byte, plus one for each further
// byte.
func offset(r *bufio.Reader) (int, error) {
	n := 0
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if n |= int(b & 0x7f); b&0x80 == 0 {
			return n, nil
		}
		if n = (n + 1) << 7; n > maxIndex {
			return 0, errIndex
		}
	}
}

// noLink fails if an extension says that another file holds entries.
func noLink(r *bufio.Reader) error {
	for {
		head, err := r.Peek(8 + hashSize)
		if errors.Is(err, io.EOF) {
			return nil // only the checksum is left
		}
		if err != nil {
			return err
		}
		if name := string(head[:4]); name == "link" || name == "sdir" {
			return errIndex
		}
		if _, err := r.Discard(8 + int(binary.BigEndian.Uint32(head[4:]))); err != nil {
			return err
		}
	}
}
