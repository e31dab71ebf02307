package approval

import (
	"context"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Sight is the input of the checks of a decision.
type Sight struct {
	Decision Decision
	Record   Record
	Late     bool
}

// DecideBlind is [Service.Decide] for control runs: its checks see blind's version of the
// decision, so that one check can be blinded. Everything else is the product's code, and works
// on the real decision.
func (s *Service) DecideBlind(ctx context.Context, dec Decision, blind func(*Sight)) (Record, error) {
	r, err := s.read(ctx, dec.ID, true)
	if err != nil {
		return Record{}, err
	}
	l := s.find(r.ID)
	if l == nil {
		return s.tooLate(ctx, r.ID)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	sight := Sight{Decision: dec, Record: r, Late: s.expired(l)}
	blind(&sight)
	if err := sight.Decision.check(); err != nil {
		return Record{}, err
	}
	if err := sight.Decision.fits(sight.Record); err != nil {
		return Record{}, err
	}
	if sight.Late {
		return Record{}, tool.Errorf(tool.Conflict, "too late")
	}
	return s.writeDecision(ctx, l, r, dec)
}
