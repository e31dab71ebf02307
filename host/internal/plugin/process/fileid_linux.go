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
		Dev: st.Dev, Ino: st.Ino, Size: st.Size, Mode: st.Mode, UID: st.Uid,
		Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
	}
}
