//go:build !linux

package process

import (
	"os"
	"syscall"
)

// identify returns the identity of the file that info describes.
func identify(info os.FileInfo) FileID {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}
	}
	return FileID{
		Dev: uint64(st.Dev), Ino: st.Ino, Size: st.Size, Mode: uint32(st.Mode), UID: st.Uid,
		Mtime: st.Mtimespec.Nano(), Ctime: st.Ctimespec.Nano(),
	}
}
