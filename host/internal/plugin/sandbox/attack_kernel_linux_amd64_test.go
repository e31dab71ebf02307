package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// otherABIAttacks make calls as a program for another processor does.
func otherABIAttacks() []attack {
	return []attack{{name: "make system calls as on a 386 (`int 0x80`)", root: all, stage: func(*scene) attempt {
		at := attempt{program: []string{"call", "int80"}}
		if !emulated() {
			at.control, at.impossible = instead("call", "getpid"), true // the kernel was built without
		}
		return at
	}}}
}

// emulated reports whether the kernel takes calls of 32 bits. Trying that here
// would end the test where it does not.
func emulated() bool {
	return inChild("int80") == nil
}

func otherABICalls() map[string]func() error {
	return map[string]func() error{"int80": callAs386}
}

// callAs386 makes the call getpid(2) of a 386 from its own machine code.
func callAs386() error {
	code, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	copy(code, []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20
		0xcd, 0x80, // int 0x80
		0xc3, // ret
	})
	// A function's value is a pointer to where its code's address is.
	entry := &struct{ code *byte }{&code[0]}
	getpid := *(*func() uintptr)(unsafe.Pointer(&entry))
	return isSelf(getpid())
}
