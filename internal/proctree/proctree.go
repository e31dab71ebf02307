// Package proctree kills processes together with everything that they have
// started, and never another process that has got the number of one of them.
//
// The process that uses it adopts orphans ([AdoptOrphans]): the children of a dead process
// become its own, so that no process can leave the tree. The kernel gives orphans to the first
// thread. This distinguishes them from the processes that this one has started itself, on
// another thread ([OnOwnThread]).
//
// Only Linux can do that. Other systems can kill only a process group; processes that have left
// the group survive.
package proctree

import "runtime"

// OnOwnThread runs f on a separate OS thread, which is not the first thread of the process. A
// parent-death signal follows the thread that started the process, which lives as long as f
// does.
func OnOwnThread(f func()) {
	done := make(chan struct{})
	go func() { // ends with f, for which the caller waits
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread() // f restores the thread: Go can use it again
		if !isFirstThread() {
			f()
			return
		}
		// The first thread is held here, so the next goroutine gets another.
		OnOwnThread(f)
	}()
	<-done
}
