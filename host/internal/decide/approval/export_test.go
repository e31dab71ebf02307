package approval

import (
	"context"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Sight is what the checks of a decision see.
type Sight struct {
	Decision Decision
	Record   Record
	Late     bool
}

// DecideBlind is [Desk.Decide] for control runs: its checks see what blind
// makes of the decision, so that one of them can be kept from what it is there
// to see. All else is the product's own, and works on the decision as it is.
func (d *Desk) DecideBlind(ctx context.Context, dec Decision, blind func(*Sight)) (Record, error) {
	r, err := d.read(ctx, dec.ID, true)
	if err != nil {
		return Record{}, err
	}
	l := d.find(r.ID)
	if l == nil {
		return d.late(ctx, r.ID)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Sight{Decision: dec, Record: r, Late: d.expired(l)}
	blind(&s)
	if err := s.Decision.check(); err != nil {
		return Record{}, err
	}
	if err := s.Decision.fits(s.Record); err != nil {
		return Record{}, err
	}
	if s.Late {
		return Record{}, tool.Errorf(tool.Conflict, "too late")
	}
	return d.settle(ctx, l, r, dec)
}
