// Package proctree kills processes together with everything that they have
// started, and never another process that has got the number of one of them.
//
// The process that uses it adopts orphans ([AdoptOrphans]): what a dead process
// leaves behind becomes its child, so that nothing can leave the tree. The
// kernel gives orphans to the first thread, which is how they are told from the
// processes that this one has started itself, on another ([OnOwnThread]).
//
// Only Linux can do that. Other systems can kill only a process group; processes that have left
// the group survive.
package proctree

import "runtime"

// OnOwnThread runs f on an OS thread that runs nothing else meanwhile and is not
// the first thread of the process. A parent-death signal follows the thread that
// started the process, which lives as long as f does.
func OnOwnThread(f func()) {
	done := make(chan struct{})
	go func() { // ends with f, for which the caller waits
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread() // f leaves it as it was: Go can use it again
		if !isFirstThread() {
			f()
			return
		}
		// The first thread is held here, so the next goroutine gets another.
		OnOwnThread(f)
	}()
	<-done
}
