package main

import (
	"context"
	"runtime/debug"

	"golang.org/x/sync/semaphore"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// roomUnit is the unit in which calls reserve memory for whole files, and roomUnits is how
	// many units there are. A call takes about twenty times the size of its files while it runs;
	// one that needs more than all units runs alone.
	roomUnit  = 512 * tool.KiB
	roomUnits = 16
	// allRoom is a size for which a call runs alone.
	allRoom = int64(roomUnits * roomUnit)
	// smallCall is the size of files up to which a call reserves nothing.
	smallCall = 64 * tool.KiB
)

// room bounds the memory of calls that hold whole files, together.
type room struct{ units *semaphore.Weighted }

func newRoom() *room { return &room{semaphore.NewWeighted(roomUnits)} }

// take waits until there is room for files of the size.
func (r *room) take(ctx context.Context, size int64) (release func(), err error) {
	if size <= int64(smallCall) {
		return func() {}, nil
	}
	units := min(1+size/int64(roomUnit), roomUnits)
	if r.units.Acquire(ctx, units) != nil {
		return nil, context.Cause(ctx)
	}
	return func() {
		if units > roomUnits/2 {
			// The limit counts mapped memory, used or not: the next large call needs
			// the garbage of this one to be gone.
			debug.FreeOSMemory()
		}
		r.units.Release(units)
	}, nil
}

// makeRoom waits until files of the size may be held in memory, until the workspace is
// closed. A call does so once, after it has its locks, so that it never waits for a lock
// while it holds room.
func (w *workspace) makeRoom(ctx context.Context, size int64) error {
	release, err := w.holdRoom(ctx, size)
	if err != nil {
		return err
	}
	w.onClose = append(w.onClose, release)
	return nil
}

// holdRoom is like makeRoom, until the caller releases the room.
func (w *workspace) holdRoom(ctx context.Context, size int64) (release func(), err error) {
	if w.room == nil {
		return func() {}, nil
	}
	return w.room.take(ctx, size)
}
