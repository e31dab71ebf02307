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

// DecideBlind is [Service.Decide] for control runs: its checks see what blind
// makes of the decision, so that one of them can be kept from what it is there
// to see. All else is the product's own, and works on the decision as it is.
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
