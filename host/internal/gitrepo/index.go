package gitrepo

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

const hasSubmodules = "it has submodules, whose configuration is their own"

// submodules says whether the index of a worktree lists submodules, in which git runs
// itself.
func submodules(path string) string {
	f, err := open(path)
	if missing(err) {
		return ""
	}
	if err == nil {
		defer func() { _ = f.Close() }() // it was only read
		var found bool
		if found, err = listsSubmodules(bufio.NewReader(io.LimitReader(f, maxIndex))); err == nil && found {
			return hasSubmodules
		}
	}
	if err != nil {
		return "its list of files cannot be read"
	}
	return ""
}

// The kinds of entries in an index, by their mode, and what else there is in one.
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

var errIndex = errors.New("the index is not understood")

// listsSubmodules reads an index of version 2 to 4. One of which another file holds a
// part, or that leaves out what is in directories, is not read.
func listsSubmodules(r *bufio.Reader) (bool, error) {
	var header struct{ Signature, Version, Entries uint32 }
	if err := binary.Read(r, binary.BigEndian, &header); err != nil {
		return false, err
	}
	if header.Signature != 0x44495243 || header.Version < 2 || header.Version > 4 { // DIRC
		return false, errIndex
	}
	entry := make([]byte, fixedSize+hashSize+flagsSize)
	for range header.Entries {
		if _, err := io.ReadFull(r, entry); err != nil {
			return false, err
		}
		switch mode := binary.BigEndian.Uint32(entry[modeOffset:]); mode & modeKind {
		case kindGitlink:
			return true, nil
		case kindDirectory:
			return false, errIndex
		}
		size, flags := len(entry), binary.BigEndian.Uint16(entry[fixedSize+hashSize:])
		if flags&flagExtended != 0 {
			if header.Version < 3 {
				return false, errIndex
			}
			if _, err := r.Discard(flagsSize); err != nil {
				return false, err
			}
			size += flagsSize
		}
		if err := skipName(r, header.Version, size, int(flags&nameMask)); err != nil {
			return false, err
		}
	}
	return false, noLink(r)
}

// skipName skips the name at the end of an entry.
func skipName(r *bufio.Reader, version uint32, size, length int) error {
	if version == 4 { // how much of the name before it is dropped, and what follows
		for {
			b, err := r.ReadByte()
			if err != nil {
				return err
			}
			if b&0x80 == 0 {
				break
			}
		}
	}
	read := 0
	for {
		part, err := r.ReadSlice(0)
		read += len(part)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
	if version == 4 {
		return nil
	}
	if length < nameMask && read-1 != length {
		return errIndex
	}
	// With the name, and one to eight zeros, its size is a multiple of eight.
	_, err := r.Discard((8 - (size+read)%8) % 8)
	return err
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
