package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// eachHost calls visit for one host after the other, until ctx ends or an error that the next host
// would not mend. visit reports whether its host has answered. absent is told once why no host
// answers, each time that one was lost. eachHost never becomes the host, since then another process
// could not.
func (a *app) eachHost(ctx context.Context, stateDir string, visit func() (reached bool, err error), absent func(reason error) error) error {
	told := false
	for ctx.Err() == nil {
		reached, err := false, client.ErrNoHost
		if a.remote != "" || answers(ctx, stateDir) {
			reached, err = visit()
		}
		told = told && !reached
		switch {
		case ctx.Err() != nil:
		case err != nil && !hostGone(err) && !errors.Is(err, client.ErrEnded) && !isStatus(err, http.StatusInternalServerError):
			return err
		case !told:
			told = true
			if err := absent(err); err != nil {
				return err
			}
		}
		_ = pause(ctx, a.betweenTries()) // the loop sees the end of ctx
	}
	return nil
}

// endOfStream returns why a stream has ended: the host refused it, is not trusted or cannot be
// reached; or else [client.ErrEnded], after which another attempt may succeed.
func endOfStream(err error) error {
	_, refused := errors.AsType[*httpapi.Problem](err)
	if err == nil || refused || errors.Is(err, client.ErrUntrusted) || errors.Is(err, client.ErrNoHost) {
		return err
	}
	return client.ErrEnded
}
