package roots

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"
)

// dirBuffers are buffers for reading directories, much larger than those of package os.
var dirBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }} //nolint:gochecknoglobals // holds nothing between two uses

// Offsets of the fields of a linux_dirent64.
const (
	direntLength = 16
	direntType   = 18
	direntName   = 19
)

// read appends all names in the directory. Names of unknown kind are irregular.
func (d *Dir) read(entries []DirEntry) ([]DirEntry, error) {
	if _, err := unix.Seek(d.fd, 0, unix.SEEK_SET); err != nil {
		return entries, err
	}
	buffer, ok := dirBuffers.Get().(*[64 << 10]byte)
	if !ok {
		buffer = new([64 << 10]byte)
	}
	defer dirBuffers.Put(buffer)
	first := len(entries)
	for {
		n, err := unix.Getdents(d.fd, buffer[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return entries, err
		}
		entries = appendNames(entries, buffer[:n])
		if len(entries)-first > maxEntries {
			return entries[:first+maxEntries], errTooMany
		}
	}
}

// appendNames appends the entries in the kernel's format. All names share one string.
func appendNames(entries []DirEntry, records []byte) []DirEntry {
	all := string(records)
	for at := 0; at+direntName < len(records); {
		length := int(binary.NativeEndian.Uint16(records[at+direntLength:]))
		if length < direntName || at+length > len(records) {
			break
		}
		start := at + direntName
		end := start + max(bytes.IndexByte(records[start:at+length], 0), 0)
		if name := all[start:end]; name != "." && name != ".." {
			entries = append(entries, DirEntry{name, typeOf(records[at+direntType])})
		}
		at += length
	}
	return entries
}

func typeOf(kind byte) fs.FileMode {
	switch kind {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_FIFO:
		return fs.ModeNamedPipe
	case unix.DT_SOCK:
		return fs.ModeSocket
	case unix.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.DT_BLK:
		return fs.ModeDevice
	default:
		return fs.ModeIrregular
	}
}
