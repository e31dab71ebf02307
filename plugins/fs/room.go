package main

import (
	"context"
	"runtime/debug"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// roomUnit is what is counted of the files that calls hold in memory, and
	// roomUnits how many of them at the same time. A call takes some twenty times
	// as much as its files while it runs; one that needs more than there is runs
	// alone.
	roomUnit  = 512 * tool.KiB
	roomUnits = 16
	// smallCall is what calls hold that need not be counted.
	smallCall = 64 * tool.KiB
)

// room is what calls that hold whole files in memory share.
type room struct {
	door  chan struct{} // held by the one that takes units
	units chan struct{}
}

func newRoom() *room {
	return &room{door: make(chan struct{}, 1), units: make(chan struct{}, roomUnits)}
}

// take waits until there is room for files of the size.
func (r *room) take(ctx context.Context, size int64) (release func(), err error) {
	if size <= int64(smallCall) {
		return func() {}, nil
	}
	units := int(min(1+size/int64(roomUnit), roomUnits))
	if err := enter(ctx, r.door); err != nil {
		return nil, err
	}
	defer func() { <-r.door }()
	for n := range units {
		if err := enter(ctx, r.units); err != nil {
			r.leave(n)
			return nil, err
		}
	}
	return func() {
		if units > roomUnits/2 {
			// The limit counts what is mapped, used or not: the next large call
			// must find the garbage of this one gone.
			debug.FreeOSMemory()
		}
		r.leave(units)
	}, nil
}

func (r *room) leave(units int) {
	for range units {
		<-r.units
	}
}

func enter(ctx context.Context, places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// makeRoom waits until files of the size may be held in memory, until the
// workspace is closed. A call does so once, when it has its locks: what others
// wait for never waits for them.
func (w *workspace) makeRoom(ctx context.Context, size int64) error {
	if w.room == nil {
		return nil
	}
	release, err := w.room.take(ctx, size)
	if err != nil {
		return err
	}
	w.onClose = append(w.onClose, release)
	return nil
}
